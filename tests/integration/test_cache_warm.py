"""``POST /cache/warm``: which job it makes, and what it refuses."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from redis import Redis

from shared.connection import connect
from shared.protocol import JobArgs
from shared.rq_job import GenerateJob
from tests.gateway import PlayedWorker, RunningGateway

PATH = "/cache/warm"
TURNS = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]


@pytest.fixture
def closed(valkey_url: str, flushed: Redis) -> Iterator[RunningGateway]:
    assert flushed.ping()
    gateway = RunningGateway(valkey_url, api_keys="alice,bob", admin_keys="root")
    yield gateway.start()
    gateway.stop()


def args_of(client: Redis, response: httpx.Response) -> JobArgs:
    """As a worker reads them."""
    assert response.status_code == 202, response.text
    job = GenerateJob.fetch(response.json()["job_id"], connection=client)
    return JobArgs.model_validate(job.args[0])


def test_a_text_is_warmed_as_the_system_prompt_of_chats(http: httpx.Client, flushed: Redis) -> None:
    response = http.post(PATH, json={"text": "Be brief."})
    args = args_of(flushed, response)
    assert args.warm == "own"
    assert args.request.messages is not None
    assert [(m.role, m.content) for m in args.request.messages] == [("system", "Be brief.")]
    assert (args.request.max_tokens, args.request.priority) == (1, "normal")
    body = response.json()
    assert response.headers["location"] == body["links"]["job"] == f"/jobs/{body['job_id']}"
    assert (body["status"], body["position"]) == ("queued", 1)


def test_a_raw_text_is_warmed_as_it_is(http: httpx.Client, flushed: Redis) -> None:
    request = args_of(flushed, http.post(PATH, json={"text": "Once", "raw": True})).request
    assert (request.prompt, request.raw, request.messages) == ("Once", True, None)


def test_the_beginning_of_a_chat_can_be_warmed(http: httpx.Client, flushed: Redis) -> None:
    request = args_of(flushed, http.post(PATH, json={"messages": TURNS})).request
    assert [m.content for m in request.messages or ()] == ["Be brief.", "Hello"]


def test_a_warmed_job_ends_like_any_other(http: httpx.Client, worker: PlayedWorker) -> None:
    job_id = http.post(PATH, json={"text": "Be brief."}).json()["job_id"]
    assert worker.play("x") == job_id
    job = http.get(f"/jobs/{job_id}?wait_s=10").json()
    assert (job["status"], job["worker"]) == ("completed", "worker-0")


def test_where_no_keys_are_set_anybody_warms_for_all(http: httpx.Client, flushed: Redis) -> None:
    assert args_of(flushed, http.post(PATH, json={"text": "x", "public": True})).warm == "public"


def test_only_an_admin_warms_for_all_keys(closed: RunningGateway) -> None:
    client = connect(closed.settings.redis_url)
    with closed.client() as http:

        def warm(key: str | None, **body: Any) -> httpx.Response:
            headers = {"X-API-Key": key} if key else {}
            return http.post(PATH, json={"text": "x"} | body, headers=headers)

        assert warm(None).status_code == 401
        refused = warm("alice", public=True)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
        assert refused.json()["error"]["field"] == "public"
        assert args_of(client, warm("alice")).warm == "own"
        assert args_of(client, warm("root", public=True)).warm == "public"
        assert args_of(client, warm("root")).warm == "own"
    client.close()


def test_the_job_is_of_the_key_that_asked(closed: RunningGateway) -> None:
    with closed.client() as http:
        job_id = http.post(PATH, json={"text": "x"}, headers={"X-API-Key": "alice"}).json()[
            "job_id"
        ]
        statuses = [
            http.get(f"/jobs/{job_id}", headers={"X-API-Key": key}).status_code
            for key in ("alice", "bob", "root")
        ]
    assert statuses == [200, 404, 200]


def test_a_submit_can_be_repeated_and_is_not_mistaken_for_another(http: httpx.Client) -> None:
    headers = {"Idempotency-Key": "k"}
    first = http.post(PATH, json={"text": "x"}, headers=headers)
    again = http.post(PATH, json={"text": "x"}, headers=headers)
    assert (first.status_code, again.status_code) == (202, 200)
    assert first.json()["job_id"] == again.json()["job_id"]
    for other in ({"text": "y"}, {"text": "x", "public": True}, {"text": "x", "raw": True}):
        response = http.post(PATH, json=other, headers=headers)
        assert (response.status_code, response.json()["error"]["code"]) == (
            409,
            "idempotency_conflict",
        )
    generated = http.post("/generate", json={"prompt": "x"}, headers=headers)
    assert generated.status_code == 202, "the key of another route is another key"


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({}, None, "give either `text` or `messages`"),
        ({"text": "x", "messages": TURNS}, None, "give either `text` or `messages`"),
        ({"messages": TURNS, "raw": True}, None, "`raw` goes with `text`"),
        ({"text": ""}, "text", "text: must not be empty"),
        ({"messages": []}, "messages", "messages: must not be empty"),
        ({"text": 1}, "text", "text: must be a text"),
        ({"text": "x", "public": "yes"}, "public", "public: must be true or false (got 'yes')"),
        ({"text": "x", "max_tokens": 2}, "max_tokens", "unknown field `max_tokens`"),
        ({"text": "x" * 2001}, "text", "text: must have at most 2000 characters (has 2001)"),
    ],
)
def test_what_cannot_be_warmed_is_refused_by_name(
    valkey_url: str, flushed: Redis, body: dict[str, Any], field: str | None, words: str
) -> None:
    gateway = RunningGateway(valkey_url, max_prompt_chars=2000)
    gateway.start()
    try:
        with gateway.client() as http:
            response = http.post(PATH, json=body)
    finally:
        gateway.stop()
    error = response.json()["error"]
    assert (response.status_code, error["field"]) == (422, field)
    assert words in error["message"]
    assert not flushed.keys("rq:job:*")


def test_a_text_that_cannot_fit_is_refused_before_it_waits(
    gateway: RunningGateway, http: httpx.Client, flushed: Redis
) -> None:
    PlayedWorker(flushed, "worker-0", "smollm2", context_tokens=64, max_piece_bytes=2)
    error = http.post(PATH, json={"text": "x" * 200}).json()["error"]
    assert (error["code"], error["field"]) == ("context_length_exceeded", "text")
    assert error["message"].startswith("text: has at least 100 tokens")
    other = http.post(PATH, json={"text": "x", "model": "none"})
    assert (other.status_code, other.json()["error"]["code"]) == (404, "model_not_found")
    assert gateway.url


def test_other_jobs_carry_no_word_of_it(http: httpx.Client, flushed: Redis) -> None:
    """Workers of the version before would refuse a field that they do not know."""
    response = http.post("/generate", json={"prompt": "x"})
    job = GenerateJob.fetch(response.json()["job_id"], connection=flushed)
    assert "warm" not in job.args[0]
    assert args_of(flushed, response).warm is None
