import asyncio
from collections.abc import Iterable

from starlette.types import Message, Receive, Scope, Send

from api.limits import BodyLimit, BodyLimits

LIMITS = BodyLimits({("POST", "/large"): 10}, default_bytes=4)


async def read_all(scope: Scope, receive: Receive, send: Send) -> None:
    more = True
    while more:
        more = (await receive()).get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def status(path: str, chunks: Iterable[bytes], announced: int | None = None) -> int:
    parts = list(chunks)
    messages = [
        {"type": "http.request", "body": part, "more_body": i < len(parts) - 1}
        for i, part in enumerate(parts)
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [] if announced is None else [(b"content-length", str(announced).encode())]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
    asyncio.run(BodyLimit(read_all, LIMITS)(scope, receive, send))
    assert [m["type"] for m in sent] == ["http.response.start", "http.response.body"]
    return int(sent[0]["status"])


def test_a_body_within_its_limit_passes() -> None:
    assert status("/large", [b"12345", b"67890"]) == 200
    assert status("/other", [b"1234"], announced=4) == 200


def test_a_body_that_grows_beyond_is_cut() -> None:
    assert status("/large", [b"12345", b"678901"]) == 413


def test_an_announced_size_is_enough_to_refuse() -> None:
    assert status("/large", [], announced=11) == 413


def test_a_route_without_an_own_limit_has_the_small_one() -> None:
    assert status("/other", [b"12345"]) == 413
