"""``/tokenize``, ``/detokenize`` and ``/apply-template``: a worker answers aside from the job queue."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from redis import Redis

from api import asking
from shared import asks
from shared.asks import Tokenize
from shared.connection import connect, connect_async
from shared.keys import answer_key, answered_key, answerers_key, asks_key
from shared.protocol import Message, Tool
from tests.gateway import PlayedWorker, RunningGateway
from tests.servers import wait_for
from tests.words import ask_of
from worker.answers import Answers
from worker.backends.scripted import ScriptedBackend

MODEL = "smollm2"


@pytest.fixture
def answers(valkey_url: str, gateway: RunningGateway, flushed: Redis) -> Iterator[Answers]:
    assert gateway.url
    with Answers(connect(valkey_url), ScriptedBackend(), MODEL) as answers:
        wait_for(lambda: flushed.exists(answerers_key(MODEL)), "somebody answers")
        yield answers


def post(http: httpx.Client, path: str, **body: object) -> Any:
    answer = http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.usefixtures("answers")
def test_a_worker_answers_all_three(http: httpx.Client, flushed: Redis) -> None:
    assert post(http, "/tokenize", content="ab") == {"tokens": [97, 98]}
    assert post(http, "/tokenize", content="\u00fc", with_pieces=True) == {
        "tokens": [{"id": 195, "piece": [195]}, {"id": 188, "piece": [188]}]
    }
    assert post(http, "/detokenize", tokens=[97, 98]) == {"content": "ab"}
    assert post(http, "/detokenize", tokens=[]) == {"content": ""}
    messages = [{"role": "user", "content": "hi"}]
    assert post(http, "/apply-template", messages=messages) == {"prompt": "<user>hi\n<assistant>"}
    assert post(http, "/tokenize", content="a", model="default") == {"tokens": [97]}
    assert not flushed.exists("rq:queues"), "no job was made"


@pytest.mark.usefixtures("answers")
def test_each_of_many_gets_its_own_answer(http: httpx.Client, flushed: Redis) -> None:
    with ThreadPoolExecutor(16) as pool:
        texts = [f"text {n}" for n in range(200)]
        replies = list(pool.map(lambda text: post(http, "/tokenize", content=text), texts))
    assert [reply["tokens"] for reply in replies] == [list(text.encode()) for text in texts]
    names = list(flushed.scan_iter("mini-vllm:answer:*"))
    assert names == [], "what was fetched is gone"


@pytest.mark.usefixtures("answers")
@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/tokenize", {}, "content"),
        ("/tokenize", {"content": 1}, "content"),
        ("/tokenize", {"content": "x", "nonsense": 1}, "nonsense"),
        ("/detokenize", {"tokens": [-1]}, "tokens.0"),
        ("/detokenize", {"tokens": [97, 99_999]}, "tokens.1"),
        ("/apply-template", {"messages": []}, "messages"),
    ],
)
def test_a_bad_question_is_refused_by_name(
    http: httpx.Client, path: str, body: dict[str, object], field: str
) -> None:
    answer = http.post(path, json=body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (422, field)
    assert post(http, "/tokenize", content="a") == {"tokens": [97]}


def test_a_text_beyond_the_setting_is_refused(valkey_url: str, flushed: Redis) -> None:
    assert flushed.ping()
    gateway = RunningGateway(valkey_url, model=MODEL, max_prompt_chars=5)
    gateway.start()
    with gateway.client() as http:
        long = http.post("/tokenize", json={"content": "x" * 6})
        many = http.post("/detokenize", json={"tokens": [1] * 6})
    gateway.stop()
    assert "content: must have at most 5 characters" in long.json()["error"]["message"]
    assert "tokens: must have at most 5 elements" in many.json()["error"]["message"]


def test_nobody_there_is_said_at_once(http: httpx.Client) -> None:
    answer = http.post("/tokenize", json={"content": "x"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_worker_ready")
    unknown = http.post("/tokenize", json={"content": "x", "model": "no-such"})
    assert unknown.json()["error"]["code"] == "model_not_found"


def test_a_worker_that_died_is_waited_for_only_so_long(
    http: httpx.Client, flushed: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ANSWER_TIMEOUT_S", 0.3)
    flushed.set(answerers_key(MODEL), "1")
    answer = http.post("/tokenize", json={"content": "x"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unavailable")


def test_a_full_list_is_refused(http: httpx.Client, flushed: Redis) -> None:
    flushed.set(answerers_key(MODEL), "1")
    flushed.rpush(asks_key(MODEL), *["x"] * asks.MAX_WAITING)
    answer = http.post("/tokenize", json={"content": "x"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "overloaded")


def test_nonsense_and_what_nobody_waits_for_is_dropped(
    http: httpx.Client, flushed: Redis, valkey_url: str
) -> None:
    old = ask_of(Tokenize(content="x"), ask_id="old", deadline_ms=1)
    flushed.rpush(asks_key(MODEL), "nonsense", "{}", b"\xff", old.model_dump_json())
    with Answers(connect(valkey_url), ScriptedBackend(), MODEL):
        wait_for(lambda: flushed.exists(answerers_key(MODEL)), "somebody answers")
        assert post(http, "/tokenize", content="a") == {"tokens": [97]}
    assert not flushed.exists(answer_key("old"))


def test_a_worker_goes_on_when_redis_comes_back(valkey_url: str, flushed: Redis) -> None:
    flushed.hset(asks_key(MODEL), "it is", "no list")
    with Answers(connect(valkey_url), ScriptedBackend(), MODEL):
        wait_for(lambda: flushed.exists(answerers_key(MODEL)), "it has tried")
        flushed.delete(asks_key(MODEL))
        flushed.rpush(asks_key(MODEL), ask_of(Tokenize(content="a")).model_dump_json())
        wait_for(lambda: flushed.exists(answer_key("1")), "it answers")
    assert 0 < flushed.ttl(answer_key("1")) <= asks.ANSWER_TTL_S
    assert 0 < flushed.ttl(answered_key("g")) <= 2 * asks.ANSWER_TTL_S


def test_an_ask_survives_its_way_through_redis(valkey_url: str, flushed: Redis) -> None:
    """The script puts JSON together by itself."""
    flushed.set(answerers_key(MODEL), "1")
    question = Tokenize(content='"\\ \u00fc %s %d {}', add_special=True)

    async def put() -> None:
        client = connect_async(valkey_url)
        await asks.put_ask(client, MODEL, "id", "g", 1000, question)
        await client.aclose()

    asyncio.run(put())
    raw = asks.take_ask(flushed, MODEL, 1)
    assert raw is not None
    assert asks.Ask.model_validate_json(raw).tokenize == question


class ToolsBackend(ScriptedBackend):
    """With a template that knows tools."""

    def render_chat(
        self, messages: Sequence[Message], at_s: float, tools: Sequence[Tool] = ()
    ) -> str:
        names = ",".join(tool.function.name for tool in tools)
        return f"[{names}]" + super().render_chat(messages, at_s)


def test_a_template_is_given_tools_where_it_knows_them(
    http: httpx.Client, flushed: Redis, valkey_url: str
) -> None:
    tools = [{"type": "function", "function": {"name": "now"}}]
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "tools": tools}
    unknown = http.post("/apply-template", json=body)
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (503, "no_worker_ready")
    PlayedWorker(flushed, "worker-0", MODEL, tool_format="hermes")
    with Answers(connect(valkey_url), ToolsBackend(), MODEL):
        wait_for(lambda: flushed.exists(answerers_key(MODEL)), "somebody answers")
        wait_for(
            lambda: http.post("/apply-template", json=body).status_code == 200,
            "the gateway sees what the worker can",
        )
        assert post(http, "/apply-template", **body) == {"prompt": "[now]<user>hi\n<assistant>"}
        none = http.post("/apply-template", json=body | {"tools": []})
        assert (none.status_code, none.json()["error"]["field"]) == (422, "tools")
        PlayedWorker(flushed, "worker-1", MODEL)  # ready too, and knows none
        refused = wait_for(
            lambda: next(
                (r for r in [http.post("/apply-template", json=body)] if r.status_code != 200), None
            ),
            "the gateway sees the other worker",
        )
    assert refused.status_code == 422
    assert refused.json()["error"]["field"] == "tools"
    assert refused.json()["error"]["code"] == "unsupported_parameter"
