"""A stream of OpenAI's API as the serving benchmark reads it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import httpx
import pytest

from cli.bench.answers import Answer
from cli.bench.asks import Ask
from cli.bench.client import Client, Server, parse, split_blocks


def blocks_of(pieces: Iterable[bytes]) -> list[bytes]:
    async def stream() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def read() -> list[bytes]:
        return [block async for block in split_blocks(stream())]

    return asyncio.run(read())


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_events_are_whole_however_they_are_cut(size: int, newline: bytes) -> None:
    body = b"data: {}\n\n: hush\n\ndata: [DONE]\n\n".replace(b"\n", newline)
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    assert blocks_of(pieces) == [b"data: {}", b": hush", b"data: [DONE]"]


def test_comments_and_the_end_are_no_events() -> None:
    assert parse(b": keep-alive") is None
    assert parse(b"data: [DONE]") is None
    assert parse(b'data: {"a": 1}') == {"a": 1}


def test_an_error_that_is_no_data_is_an_error_too() -> None:
    answer = Answer(0)
    answer.feed(parse(b'error: {"message": "no slot"}') or {}, 1)
    assert "no slot" in answer.error


def feed(*events: dict[str, Any]) -> Answer:
    """One a second."""
    answer = Answer(sent_s=10)
    for number, event in enumerate(events, 1):
        answer.feed(json.loads(json.dumps(event)), 10 + number)
    return answer


def test_the_first_token_of_a_chat_is_its_first_text() -> None:
    role = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
    none = {"choices": [{"delta": {"content": None}}]}
    answer = feed(role, none, {"choices": [{"delta": {"content": "hi"}}]})
    assert (answer.came_s, answer.text) == ([13], "hi")


def test_the_usage_is_that_of_the_last_event_and_may_lack_details() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 1}
    answer = feed({"choices": [{"text": "a"}], "usage": None}, {"choices": [], "usage": usage})
    assert (answer.prompt_tokens, answer.output_tokens, answer.cached_tokens) == (7, 1, 0)
    answer = feed({"choices": [], "usage": usage | {"prompt_tokens_details": {"cached_tokens": 5}}})
    assert answer.cached_tokens == 5
    assert answer.has_usage


@pytest.mark.parametrize(
    "event",
    [
        {"choices": ["a"]},
        {"choices": [{"delta": "a"}]},
        {"choices": 5},
        {"choices": [{"text": 5}]},
        {"choices": [], "usage": [1]},
        {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": "2"}},
        {"choices": [], "usage": {"prompt_tokens": 1}},
    ],
)
def test_what_is_not_as_the_api_has_it_is_an_error_of_its_request(event: dict[str, Any]) -> None:
    def answering(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=f"data: {json.dumps(event)}\n\n")

    answer = asyncio.run(ask(answering))
    assert answer.error_kind == "not OpenAI's API"
    assert not answer.is_good


def test_an_answer_without_a_choice_took_its_time_all_the_same() -> None:
    answer = feed({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 0}})
    assert answer.e2e_s == 1


async def ask(answering: Callable[[httpx.Request], httpx.Response]) -> Answer:
    async with Client(Server("a", "http://a"), None) as client:
        await client._http.aclose()
        client._http = httpx.AsyncClient(
            base_url="http://a", transport=httpx.MockTransport(answering)
        )
        answer = Answer(sent_s=0)
        await client.send(Ask(4, "hello"), answer)
        return answer


def test_a_password_in_an_address_is_not_shown() -> None:
    assert Server("a", "http://me:secret@host:80/x").shown_url == "http://host:80/x"
    assert Server("a", "http://[::1]:80").shown_url == "http://[::1]:80"
