import asyncio
import json
import logging
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from api.request_id import RequestId
from tests.logs import kept_lines


class Exchange:
    """One request against an application, and what came of it."""

    def __init__(self, *, method: str = "GET", path: str = "/", request_id: str = "") -> None:
        self.sent: list[Message] = []
        self.seen: list[Scope] = []
        headers = [(b"x-request-id", request_id.encode("latin-1"))]
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": headers,
        }

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


def test_a_failure_is_logged_and_not_shown() -> None:
    with kept_lines(logging.INFO) as lines:
        exchange = Exchange(request_id="r1").run(RuntimeError("secret"))
    assert exchange.sent[0]["status"] == 500
    assert exchange.request_id == "r1"
    error = json.loads(exchange.sent[1]["body"])["error"]
    assert error["code"] == "internal_error"
    assert "secret" not in error["message"]
    failure, access = lines
    assert failure["traceback"].endswith("RuntimeError: secret")
    assert (failure["request_id"], access["request_id"]) == ("r1", "r1")
    assert access["status"] == 500


def test_a_client_that_leaves_is_no_failure() -> None:
    with kept_lines(logging.INFO) as lines:
        assert Exchange().run(ClientDisconnect()).sent == []
    assert [line["status"] for line in lines] == [0]


def test_a_request_is_one_line_without_its_query() -> None:
    with kept_lines(logging.INFO) as lines:
        exchange = Exchange(method="POST", path="/generate\n" + "a" * 1000)
        exchange.scope["query_string"] = b"key=secret"
        exchange.run()
    (line,) = lines
    assert line["path"] == "/generate\n" + "a" * 190
    assert (line["method"], line["status"], line["level"]) == ("POST", 200, "info")
    assert line["request_id"] == exchange.request_id
    assert line["duration_ms"] >= 0
    assert "secret" not in json.dumps(line)


def test_a_path_says_nothing_but_a_path() -> None:
    with kept_lines(logging.INFO) as lines:
        Exchange(path="/x 200 in 1 ms job=7").run()
    assert lines[0]["message"].startswith("GET /x%20200%20in%201%20ms%20job=7 200 in ")


def test_what_machines_ask_every_few_seconds_is_logged_where_it_fails() -> None:
    with kept_lines(logging.INFO) as lines:
        Exchange(path="/health").run()
        Exchange(path="/ready").run(RuntimeError("x"))
    assert {line["path"] for line in lines if "path" in line} == {"/ready"}


def test_head_is_get_but_for_streams() -> None:
    assert Exchange(method="HEAD").run().seen[0]["method"] == "GET"
    for path in ("/jobs/x/stream", "/live"):
        assert Exchange(method="HEAD", path=path).run().seen[0]["method"] == "HEAD"
