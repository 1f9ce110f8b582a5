"""The logs of a real pool in JSON: a request is followed through them, and no prompt is in them."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from shared.connection import connect
from shared.keys import asks_key, queue_key, queue_name
from tests.logs import parsed
from tests.service import Up, wait_until

MARK = "quetzalcoatlus"
#: Of `up` on its stdout, for people and scripts.
FOR_PEOPLE = ("ready: ", "try: ", "       ")


class Pool:
    def __init__(self, folder: Path) -> None:
        self.up = Up(
            folder,
            *("--workers", "2", "--threads", "1", "--no-tune"),
            MINI_VLLM_LOG_FORMAT="json",
            MINI_VLLM_DRAIN_TIMEOUT_S="0",
        ).wait_ready()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """All of them, each an object."""
        return parsed([line for line in list(self.up.lines) if not line.startswith(FOR_PEOPLE)])

    def lines_with(self, **fields: Any) -> list[dict[str, Any]]:
        return [line for line in self.lines if fields.items() <= line.items()]

    def wait_for(self, **fields: Any) -> dict[str, Any]:
        found: list[dict[str, Any]] = wait_until(
            lambda: self.lines_with(**fields), 20, f"a line with {fields}"
        )
        return found[0]

    def wait_for_end(self, job_id: str) -> None:
        def ends() -> list[dict[str, Any]]:
            return [line for line in self.lines_with(job=job_id) if "finish_reason" in line]

        wait_until(ends, 60, f"job {job_id} ends")

    def set_level(self, http: httpx.Client, level: str | None) -> None:
        """And waits until all have said that they took it over."""
        told = f"the log level is {level or 'info'} now"
        num_before = self._num_told(told)
        if level is None:
            assert http.delete("/admin/log-level").json() == {"level": None}
        else:
            assert http.put("/admin/log-level", json={"level": level}).json() == {"level": level}
        wait_until(lambda: self._num_told(told) == num_before + 3, 20, "all have taken it over")

    def _num_told(self, words: str) -> int:
        return sum(line["message"].startswith(words) for line in self.lines)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    pool = Pool(tmp_path_factory.mktemp("up"))
    try:
        yield pool
    finally:
        pool.up.stop()


@pytest.fixture
def http(pool: Pool) -> Iterator[httpx.Client]:
    with pool.up.client() as http:
        yield http


def submit(http: httpx.Client, request_id: str, **body: Any) -> str:
    fields = {"prompt": f"Tell me of the {MARK}", "max_tokens": 6} | body
    response = http.post("/generate", json=fields, headers={"X-Request-Id": request_id})
    assert (response.status_code, response.headers["x-request-id"]) == (202, request_id)
    return str(response.json()["job_id"])


def test_a_request_is_followed_from_the_client_through_gateway_and_worker(
    pool: Pool, http: httpx.Client
) -> None:
    job_id = submit(http, "trace-1/a")
    job = http.get(f"/jobs/{job_id}?wait_s=60", headers={"X-Request-Id": "trace-1/b"}).json()
    end = pool.wait_for(job=job_id, status="completed")
    accepted, begun, ended = pool.lines_with(request_id="trace-1/a")
    assert accepted["process"] == "gateway"
    assert (accepted["method"], accepted["path"], accepted["status"]) == ("POST", "/generate", 202)
    assert accepted["duration_ms"] > 0
    assert begun["attempt"] == 1
    assert ended == end
    assert ended["finish_reason"] == job["finish_reason"]
    assert ended["tokens"] == job["usage"]["completion_tokens"]
    assert ended["queued_s"] == job["timings"]["queued_s"]
    for line in (begun, ended):
        assert line["process"] == line["worker"] == job["worker"]
        assert line["model"] == "smollm2"
    assert {line["job"] for line in (accepted, begun, ended)} == {job_id}
    read = pool.wait_for(request_id="trace-1/b")
    assert (read["path"], read["job"]) == (f"/jobs/{job_id}", job_id)


def test_a_job_that_is_refused_by_its_worker_says_why_and_of_which_request(
    pool: Pool, http: httpx.Client
) -> None:
    job_id = submit(http, "trace-2", prompt="a b c d e f " * 400, raw=True)
    line = pool.wait_for(job=job_id, status="failed")
    assert (line["error"], line["request_id"]) == ("context_length_exceeded", "trace-2")


def test_a_call_of_several_jobs_is_one_line_that_names_them(pool: Pool, http: httpx.Client) -> None:
    body = {"model": "smollm2", "prompt": "The sea", "n": 2, "max_tokens": 4}
    assert http.post("/v1/completions", json=body, headers={"X-Request-Id": "trace-3"}).is_success
    line = pool.wait_for(request_id="trace-3", process="gateway")
    assert len(line["jobs"]) == 2
    for job_id in line["jobs"]:
        assert pool.wait_for(job=job_id, status="completed")["request_id"] == "trace-3"


def test_the_level_is_changed_while_all_runs_and_back(pool: Pool, http: httpx.Client) -> None:
    assert http.get("/admin/log-level").json() == {"level": None}
    http.get("/health", headers={"X-Request-Id": "quiet"})
    pool.set_level(http, "debug")
    http.get("/health", headers={"X-Request-Id": "loud"})
    assert pool.wait_for(request_id="loud")["level"] == "debug"
    pool.set_level(http, None)
    http.get("/health", headers={"X-Request-Id": "quiet"})
    http.get("/", headers={"X-Request-Id": "after"})
    pool.wait_for(request_id="after")
    assert not pool.lines_with(request_id="quiet")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"level": "loud"}, "level: must be 'debug', 'info', 'warning' or 'error'"),
        ({}, "level: is required"),
        ({"level": "debug", "for_s": 3}, "unknown field `for_s`"),
        ({"level": 10}, "level: must be"),
    ],
)
def test_a_level_that_is_none_is_refused_by_name(
    http: httpx.Client, body: dict[str, Any], words: str
) -> None:
    response = http.put("/admin/log-level", json=body)
    assert response.status_code == 422
    assert words in response.json()["error"]["message"]
    assert http.get("/admin/log-level").json() == {"level": None}


_CHAT = [{"role": "user", "content": f"What is a {MARK}?"}]
_SCHEMA = {"type": "object", "properties": {MARK: {"enum": [MARK]}}, "required": [MARK]}
_TOOL = {"type": "function", "function": {"name": MARK, "parameters": _SCHEMA}}


def _format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


#: What is well formed, and what is not: whatever comes of it.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("/generate", {"prompt": f"Tell me of the {MARK}", "max_tokens": 4, "stop": MARK}),
    ("/generate", {"messages": _CHAT, "max_tokens": 4}),
    ("/generate", {"prompt": MARK, "max_tokens": 0, MARK: 1}),
    ("/generate", {"prompt": [MARK], "messages": MARK}),
    ("/generate", {"prompt": "a", "priority": MARK, "model": MARK}),
    ("/generate", {"prompt": f"{MARK} " * 1000, "raw": True}),
    ("/generate", {"prompt": MARK, "max_tokens": 4, "grammar": f'root ::= "{MARK}"'}),
    ("/generate", {"prompt": MARK, "max_tokens": 4, "grammar": f"root ::= {MARK} ("}),
    ("/generate", {"messages": _CHAT, "max_tokens": 16, "response_format": _format(_SCHEMA)}),
    ("/generate", {"messages": _CHAT, "response_format": _format({"pattern": f"({MARK}"})}),
    ("/generate", {"messages": _CHAT, "response_format": _format({"type": MARK})}),
    ("/generate", {"messages": _CHAT, "max_tokens": 4, "tools": [_TOOL]}),
    ("/v1/chat/completions", {"model": "smollm2", "messages": _CHAT, "max_tokens": 4}),
    ("/v1/chat/completions", {"model": MARK, "messages": _CHAT, "stream": True}),
    ("/v1/completions", {"model": "smollm2", "prompt": MARK, "max_tokens": 4, "stream": True}),
    ("/v1/completions", {"model": "smollm2", "prompt": MARK, "max_tokens": MARK}),
    ("/cache/warm", {"text": f"{MARK} " * 80}),
    ("/tokenize", {"content": MARK}),
    ("/tokenize", {"content": MARK, "add_special": MARK}),
    ("/apply-template", {"messages": _CHAT}),
    ("/apply-template", {"messages": [{"role": MARK, "content": MARK}]}),
    ("/v1/batches", {"input_file_id": MARK, "endpoint": MARK}),
]


def test_no_prompt_is_in_any_log_at_debug(pool: Pool, http: httpx.Client) -> None:
    pool.set_level(http, "debug")
    job_ids = []
    for number, (path, body) in enumerate(CALLS):
        response = http.post(path, json=body, headers={"X-Request-Id": f"secret-{number}"})
        assert response.status_code < 500, (path, body, response.text)
        if response.status_code == 202:
            job_ids.append(response.json()["job_id"])
    http.post("/generate", content=f'{{"prompt": "{MARK}'.encode())
    http.post("/generate", content=f'{{"prompt": "{MARK}\\ud800"}}'.encode())
    http.get("/jobs", params={MARK: MARK})
    line = {"custom_id": MARK, "method": "POST", "url": "/v1/completions", "body": {"prompt": MARK}}
    for text in (json.dumps(line), MARK):
        upload = {"file": (f"{MARK}.jsonl", text.encode())}
        file = http.post("/v1/files", data={"purpose": "batch"}, files=upload).json()
        batch = {"input_file_id": file["id"], "endpoint": "/v1/completions"}
        batch |= {"completion_window": "24h", "metadata": {MARK: MARK}}
        batch_id = http.post("/v1/batches", json=batch).json()["id"]
        status = "failed" if text == MARK else "completed"
        pool.wait_for(message=f"batch {batch_id}: {status}", batch=batch_id)
    client = connect(pool.up.redis_url)
    try:
        client.rpush(asks_key("smollm2"), json.dumps({"tokenize": {"content": MARK}}))
        client.rpush(queue_key(queue_name("smollm2", "normal")), json.dumps({"prompt": MARK}))
    finally:
        client.close()
    for job_id in job_ids:
        pool.wait_for(job=job_id, process="gateway")
    for job_id in job_ids:
        pool.wait_for_end(job_id)
    pool.wait_for(
        message="an entry of 28 bytes was in a queue and is no whole job of ours; it was dropped"
    )
    wait_until(
        lambda: [x for x in pool.lines if "among the questions" in x["message"]], 20, "it is read"
    )
    for number in range(len(CALLS)):
        pool.wait_for(request_id=f"secret-{number}", process="gateway")
    assert MARK not in pool.up.output
    pool.set_level(http, None)


def test_a_worker_that_dies_and_one_that_drains_name_their_jobs(
    pool: Pool, http: httpx.Client
) -> None:
    """The last one: it ends the pool."""
    job_id = submit(http, "trace-9", max_tokens=900, ignore_eos=True)
    begun = pool.wait_for(job=job_id, attempt=1)
    (victim,) = [
        w["pid"] for w in http.get("/workers").json()["workers"] if w["name"] == begun["worker"]
    ]
    for process in pool.up.descendants:
        if process.pid == victim:
            process.kill()
    again = pool.wait_for(job=job_id, attempt=2)
    assert again["request_id"] == "trace-9"
    pool.up.signal(signal.SIGINT)
    assert pool.up.wait() == 0
    (parked,) = [
        x
        for x in pool.lines_with(job=job_id)
        if x["message"].endswith("tokens") and "parked" in x["message"]
    ]
    assert (parked["request_id"], parked["worker"]) == ("trace-9", again["worker"])
    assert {line["process"] for line in pool.lines} == {"up", "gateway", "worker-0", "worker-1"}
    assert MARK not in pool.up.output
