"""`mini-vllm jobs` against a gateway: what is shown, which job is meant, exit codes."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest
from redis import Redis

from shared.connection import connect
from tests.gateway import PlayedWorker, RunningGateway
from tests.gateway_process import running
from tests.servers import Valkey, wait_for

NOBODYS = "0" * 32


def start(url: str, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "cli", "jobs", *words, "--url", url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(url: str, *words: str) -> tuple[int, str, str]:
    process = start(url, *words)
    output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors


def submit(http: httpx.Client) -> str:
    return str(http.post("/generate", json={"prompt": "x"}).raise_for_status().json()["job_id"])


def test_jobs_are_listed_newest_first_and_by_status(
    gateway: RunningGateway, http: httpx.Client, worker: PlayedWorker
) -> None:
    ended = submit(http)
    assert worker.play("yes") == ended
    queued = submit(http)
    code, output, _ = run(gateway.url, "list")
    rows = [line.split() for line in output.splitlines()]
    assert (code, [row[0] for row in rows]) == (0, ["job", queued[:8], ended[:8]])
    assert [row[1] for row in rows[1:]] == ["queued", "completed"]
    code, output, _ = run(gateway.url, "list", "--status", "completed", "--json")
    assert [job["job_id"] for job in json.loads(output)["jobs"]] == [ended]
    code, output, _ = run(gateway.url, "list", "--limit", "1", "--json")
    assert [job["job_id"] for job in json.loads(output)["jobs"]] == [queued]
    code, output, errors = run(gateway.url, "list", "--status", "failed")
    assert (code, output, "no job is failed" in errors) == (0, "", True)


def test_many_jobs_are_listed_over_pages(
    gateway: RunningGateway, http: httpx.Client, worker: PlayedWorker
) -> None:
    ids = [submit(http) for _ in range(203)]
    _, output, _ = run(gateway.url, "list", "--limit", "202", "--json")
    assert {job["job_id"] for job in json.loads(output)["jobs"]} < set(ids)
    assert len(json.loads(output)["jobs"]) == 202
    code, output, _ = run(gateway.url, "show", ids[0][:12], "--json")
    assert (code, json.loads(output)["job_id"]) == (0, ids[0])


def test_a_job_is_shown_by_the_beginning_of_its_id(
    gateway: RunningGateway, http: httpx.Client, worker: PlayedWorker
) -> None:
    job_id = submit(http)
    worker.play("so\n", "be [red]it\x1b[2J")
    code, output, _ = run(gateway.url, "show", job_id[:8])
    assert code == 0
    assert job_id in output
    assert output.endswith("\nso\nbe [red]it\\x1b[2J\n")
    code, output, _ = run(gateway.url, "show", job_id, "--json")
    assert json.loads(output)["text"] == "so\nbe [red]it\x1b[2J"


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_what_a_user_and_a_model_wrote_does_nothing_to_a_terminal(
    gateway: RunningGateway,
    http: httpx.Client,
    worker: PlayedWorker,
    monkeypatch: pytest.MonkeyPatch,
    encoding: str,
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    body = {"prompt": "x", "user": "caf\u00e9\u009b2J\u202e\x1b]0;x\x07\nstatus failed"}
    job_id = str(http.post("/generate", json=body).raise_for_status().json()["job_id"])
    worker.play("na\u00efve\u009b2J")
    for words in (("list",), ("show", job_id), ("show", job_id, "--json")):
        code, output, errors = run(gateway.url, *words)
        assert (code, errors) == (0, ""), words
        assert not set(output) & set("\u009b\u202e\x1b\x07"), words
    assert json.loads(output)["user"] == body["user"]


def test_a_tail_prints_what_there_is_and_then_the_rest(
    gateway: RunningGateway, http: httpx.Client, worker: PlayedWorker
) -> None:
    job_id = submit(http)
    assert worker.take() == job_id
    worker.start(job_id)
    worker.token(job_id, 0, "so ")
    process = start(gateway.url, "tail", job_id[:10])
    assert process.stdout is not None
    assert process.stdout.read(3) == "so "
    worker.token(job_id, 1, "be it")
    worker.end(job_id, 2)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, errors) == (0, "be it\n", "")


def test_text_with_other_ends_of_lines_is_no_end_of_a_tail(
    gateway: RunningGateway, http: httpx.Client, worker: PlayedWorker
) -> None:
    job_id = submit(http)
    worker.play("a\u2028b\u0085", "c")
    code, output, errors = run(gateway.url, "tail", job_id)
    assert (code, output, errors) == (0, "a\u2028b\u0085c\n", "")


def test_a_tail_of_a_job_that_was_cancelled_ends_with_a_code(
    gateway: RunningGateway, http: httpx.Client, worker: PlayedWorker
) -> None:
    job_id = submit(http)
    process = start(gateway.url, "tail", job_id)
    assert process.stderr is not None
    assert "waits at place 1, with normal priority" in process.stderr.readline()
    code, output, _ = run(gateway.url, "cancel", job_id)
    assert (code, output) == (0, f"{job_id} cancelled after 0 tokens\n")
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, "cancelled" in errors) == (1, True)


def test_ctrl_c_leaves_the_job_running_and_says_so(
    gateway: RunningGateway, http: httpx.Client, worker: PlayedWorker
) -> None:
    job_id = submit(http)
    worker.take()
    worker.start(job_id)
    worker.token(job_id, 0, "so ")
    process = start(gateway.url, "tail", job_id)
    assert process.stdout is not None
    assert process.stdout.read(3) == "so "
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"mini-vllm jobs cancel {job_id}" in errors
    assert http.get(f"/jobs/{job_id}").json()["status"] == "running"


def test_a_tail_goes_on_at_the_same_token_at_the_next_gateway(valkey: Valkey) -> None:
    with running(valkey.url) as first:
        worker = PlayedWorker(connect(valkey.url), "worker-0", "smollm2")
        with first.client() as http:
            job_id = submit(http)
        worker.take()
        worker.start(job_id)
        worker.token(job_id, 0, "one ")
        process = start(first.url, "tail", job_id)
        assert process.stdout is not None
        assert process.stdout.read(4) == "one "
    worker.token(job_id, 1, "two ")
    with running(valkey.url, first.port):
        worker.token(job_id, 2, "three")
        worker.end(job_id, 3)
        output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, "two three\n")


def test_of_several_to_cancel_those_that_are_there_are(
    gateway: RunningGateway, http: httpx.Client, worker: PlayedWorker
) -> None:
    first, second, ended = submit(http), submit(http), submit(http)
    assert http.delete(f"/jobs/{ended}").json()["status"] == "cancelled"
    code, output, errors = run(gateway.url, "cancel", first, NOBODYS, second[:9], ended)
    assert code == 1
    assert output.splitlines() == [
        f"{first} cancelled after 0 tokens",
        f"{second} cancelled after 0 tokens",
        f"{ended} had ended before: cancelled",
    ]
    assert errors.startswith(f"error: {NOBODYS}: ")
    assert http.get(f"/jobs/{second}").json()["status"] == "cancelled"


def test_a_running_job_whose_worker_does_not_look_is_said_to_end_soon(
    gateway: RunningGateway, http: httpx.Client, worker: PlayedWorker
) -> None:
    job_id = submit(http)
    worker.take()
    worker.start(job_id)
    code, output, _ = run(gateway.url, "cancel", job_id)
    assert (code, "will be cancelled" in output) == (0, True)
    assert run(gateway.url, "list")[1].splitlines()[1].split()[1] == "cancelling"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["show", NOBODYS], "no job with this id"),
        (["show", "abcd"], "no job of yours begins with abcd"),
        (["tail", "abc"], "no job id"),
        (["cancel", "../metrics"], "no job id"),
        (["cancel", "0000000"], "no job id"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(
    gateway: RunningGateway, words: list[str], expected: str
) -> None:
    code, output, errors = run(gateway.url, *words)
    assert (code, output, errors.count("\n")) == (1, "", 1)
    assert expected in errors


@pytest.fixture
def closed(valkey_url: str, flushed: Redis) -> Iterator[RunningGateway]:
    gateway = RunningGateway(valkey_url, api_keys="alice,bob")
    yield gateway.start()
    gateway.stop()


def test_a_key_sees_its_own_jobs(closed: RunningGateway, flushed: Redis) -> None:
    with closed.client() as http:
        http.headers["Authorization"] = "Bearer alice"
        job_id = submit(http)
    assert job_id[:8] in run(closed.url, "list", "--api-key", "alice")[1]
    code, output, errors = run(closed.url, "list", "--api-key", "bob")
    assert (code, output, "no jobs" in errors) == (0, "", True)
    code, _, errors = run(closed.url, "cancel", job_id[:8], "--api-key", "bob")
    assert (code, "no job of yours" in errors) == (1, True)
    code, _, errors = run(closed.url, "list")
    assert (code, "API key" in errors) == (1, True)
    with closed.client() as http:
        http.headers["Authorization"] = "Bearer alice"
        wait_for(lambda: http.get(f"/jobs/{job_id}").json()["status"] == "queued", "it waits still")
