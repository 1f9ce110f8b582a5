import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.body_budget import BodyBudget
from api.limits import BodyLimit, BodyLimits

LIMITS = BodyLimits({("POST", "/large"): 10}, default_bytes=4, timeout_s=0.05)
BUDGET_BYTES = 15


async def read_all(scope: Scope, receive: Receive, send: Send) -> None:
    more = True
    while more:
        more = (await receive()).get("more_body", False)
    await answer(send)


async def answer(send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def pieces(*parts: bytes, ends: bool = True) -> list[Message]:
    return [
        {"type": "http.request", "body": part, "more_body": not ends or i < len(parts) - 1}
        for i, part in enumerate(parts)
    ]


class Exchange:
    """One request against an application within limits, and what came of it."""

    def __init__(
        self, app: ASGIApp, path: str, messages: Iterable[Message], announced: int | None = None
    ) -> None:
        self.budget = BodyBudget(BUDGET_BYTES)
        self.sent: list[Message] = []
        self._app = app
        self._messages = list(messages)
        headers = [] if announced is None else [(b"content-length", str(announced).encode())]
        self._scope = {"type": "http", "method": "POST", "path": path, "headers": headers}

    def run(self, on_send: Callable[[], None] = lambda: None) -> "Exchange":
        async def receive() -> Message:
            if not self._messages:
                await asyncio.Event().wait()
            return self._messages.pop(0)

        async def send(message: Message) -> None:
            on_send()
            self.sent.append(message)

        asyncio.run(BodyLimit(self._app, LIMITS, self.budget)(self._scope, receive, send))
        return self

    @property
    def status(self) -> int:
        assert [m["type"] for m in self.sent] == ["http.response.start", "http.response.body"]
        return int(self.sent[0]["status"])

    @property
    def error(self) -> Any:
        return json.loads(self.sent[1]["body"])["error"]


def status(path: str, *parts: bytes, announced: int | None = None) -> int:
    return Exchange(read_all, path, pieces(*parts), announced).run().status


def test_a_body_within_its_limit_passes() -> None:
    assert status("/large", b"12345", b"67890") == 200
    assert status("/other", b"1234", announced=4) == 200


def test_a_body_that_grows_beyond_is_cut() -> None:
    assert status("/large", b"12345", b"678901") == 413


def test_an_announced_size_is_enough_to_refuse() -> None:
    assert status("/large", announced=11) == 413


def test_a_route_without_an_own_limit_has_the_small_one() -> None:
    assert status("/other", b"12345") == 413


def test_a_body_that_stalls_is_refused() -> None:
    exchange = Exchange(read_all, "/large", pieces(b"12345", ends=False)).run()
    assert exchange.status == 408
    assert exchange.error["code"] == "body_timeout"
    assert "0.05 s" in exchange.error["message"]


def test_who_has_the_whole_body_may_wait_for_the_client_to_leave() -> None:
    async def wait(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(receive(), 4 * LIMITS.timeout_s)
        await answer(send)

    assert Exchange(wait, "/large", pieces(b"123")).run().status == 200


def test_a_body_that_trickles_for_ever_is_refused() -> None:
    async def trickle() -> Message:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"", "more_body": True}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    limits = BodyLimits({}, timeout_s=30, deadline_s=0.05)
    scope = {"type": "http", "method": "POST", "path": "/", "headers": []}
    asyncio.run(BodyLimit(read_all, limits, BodyBudget(9))(scope, trickle, send))
    assert sent[0]["status"] == 408
    assert b"not whole after 0.05 s" in sent[1]["body"]


def test_an_answer_that_has_begun_is_not_cut_for_a_body_that_stalls() -> None:
    async def answer_while_waiting(scope: Scope, receive: Receive, send: Send) -> None:
        waiting: asyncio.Future[Message] = asyncio.ensure_future(receive())
        await asyncio.sleep(0)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        done, _ = await asyncio.wait([waiting], timeout=4 * LIMITS.timeout_s)
        assert not done, "it waits on for the client to leave"
        waiting.cancel()
        await send({"type": "http.response.body", "body": b""})

    assert Exchange(answer_while_waiting, "/large", []).run().status == 200


def test_what_passes_the_budget_is_refused_and_nothing_stays_held() -> None:
    exchange = Exchange(read_all, "/large", pieces(b"12345", b"6"))
    exchange.budget.take(BUDGET_BYTES - 5)
    exchange.run()
    assert (exchange.status, exchange.error["code"]) == (503, "overloaded")
    assert dict(exchange.sent[0]["headers"])[b"retry-after"]
    assert exchange.budget.held_bytes == BUDGET_BYTES - 5


async def fail(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    raise RuntimeError


async def leave(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@pytest.mark.parametrize(
    ("app", "messages"),
    [
        (read_all, pieces(b"12345", b"67890")),
        (read_all, pieces(b"12345", b"678901")),
        (read_all, pieces(b"12345", ends=False)),
        (fail, pieces(b"12345")),
        (leave, [*pieces(b"12345", ends=False), {"type": "http.disconnect"}]),
    ],
    ids=["answered", "too large", "stalled", "failed", "left"],
)
def test_however_a_request_ends_its_bytes_are_free(app: ASGIApp, messages: list[Message]) -> None:
    seen: list[int] = []
    exchange = Exchange(app, "/large", messages)

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        async def watched_receive() -> Message:
            message = await receive()
            seen.append(exchange.budget.held_bytes)
            return message

        await app(scope, watched_receive, send)

    exchange._app = watched
    try:
        exchange.run()
    except RuntimeError:
        assert app is fail
    assert seen[0] == 5
    assert exchange.budget.held_bytes == 0


def test_a_body_is_free_when_its_answer_begins() -> None:
    held: list[int] = []
    exchange = Exchange(read_all, "/large", pieces(b"12345"))
    exchange.run(on_send=lambda: held.append(exchange.budget.held_bytes))
    assert held == [0, 0]
