import asyncio
import json
import logging

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from api.request_id import RequestId


class Exchange:
    """One request against an application, and what came of it."""

    def __init__(self, *, method: str = "GET", path: str = "/", request_id: str = "") -> None:
        self.sent: list[Message] = []
        self.seen: list[Scope] = []
        headers = [(b"x-request-id", request_id.encode("latin-1"))]
        self.scope = {"type": "http", "method": method, "path": path, "headers": headers}

    def run(self, *failures: Exception) -> "Exchange":
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            self.seen.append(scope)
            for failure in failures:
                raise failure
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def receive() -> Message:
            raise AssertionError("nothing is read")

        async def send(message: Message) -> None:
            self.sent.append(message)

        asyncio.run(RequestId(app)(self.scope, receive, send))
        return self

    @property
    def request_id(self) -> str:
        return str(dict(self.sent[0]["headers"])[b"x-request-id"].decode())


@pytest.mark.parametrize("given", ["a", "trace:1/2", "A" * 128])
def test_a_sane_id_is_kept_and_passed_on(given: str) -> None:
    exchange = Exchange(request_id=given).run()
    assert exchange.request_id == given
    assert exchange.seen[0]["state"]["request_id"] == given


@pytest.mark.parametrize("given", ["", "a b", "a\n", "é", "A" * 129])
def test_any_other_is_replaced(given: str) -> None:
    exchange = Exchange(request_id=given).run()
    assert len(exchange.request_id) == 32


def test_a_failure_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        exchange = Exchange(request_id="r1").run(RuntimeError("secret"))
    assert exchange.sent[0]["status"] == 500
    assert exchange.request_id == "r1"
    error = json.loads(exchange.sent[1]["body"])["error"]
    assert error["code"] == "internal_error"
    assert "secret" not in error["message"]
    assert "secret" in caplog.text
    assert "r1" in caplog.text


def test_a_client_that_leaves_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert Exchange().run(ClientDisconnect()).sent == []
    assert caplog.text == ""


def test_head_is_get_but_for_streams() -> None:
    assert Exchange(method="HEAD").run().seen[0]["method"] == "GET"
    stream = Exchange(method="HEAD", path="/jobs/x/stream").run()
    assert stream.seen[0]["method"] == "HEAD"
