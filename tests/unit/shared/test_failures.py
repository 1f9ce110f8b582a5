import json
from typing import Any

import pytest

from shared.failures import MAX_MESSAGE_CHARS, MAX_SHOWN, TTL_S, shown_failures

NOW_S = 1_800_000_000.0


def entry(name: str = "w", at: float = NOW_S, **changes: Any) -> bytes:
    fields = {"name": name, "host": "h", "model": "m", "message": "it failed", "at": at}
    return json.dumps(fields | changes).encode()


def test_the_newest_come_first_and_old_ones_not_at_all() -> None:
    fields = {
        b"old": entry("old", NOW_S - TTL_S - 1),
        b"one": entry("one", NOW_S - 5),
        b"two": entry("two", NOW_S - 1),
        b"future": entry("future", NOW_S + 1e9),
    }
    assert [f.name for f in shown_failures(fields, now_s=NOW_S)] == ["two", "one"]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"[" * 8000,
        entry(at=float("nan")),
        entry(message=None),
        entry(message="x" * 9000),
        b'{"name": "w"}',
    ],
)
def test_what_cannot_be_read_is_left_out(value: bytes) -> None:
    fields = {b"bad": value, b"good": entry("good")}
    assert [f.name for f in shown_failures(fields, now_s=NOW_S)] == ["good"]


def test_what_is_shown_is_one_bounded_line() -> None:
    hostile = entry("n" * 200, message="a\n\x1b[31mb\u2028" + "c" * 4000, host="h\r\nh")
    (shown,) = shown_failures({b"x": hostile}, now_s=NOW_S)
    assert shown.message.startswith("a [31mb ccc")
    assert len(shown.message) == MAX_MESSAGE_CHARS
    assert shown.host == "h h"
    assert len(shown.name) == 80


def test_no_more_than_so_many_are_shown() -> None:
    fields = {str(i).encode(): entry(f"w{i:04}", NOW_S - i / 100) for i in range(1000)}
    shown = shown_failures(fields, now_s=NOW_S)
    assert len(shown) == MAX_SHOWN
    assert shown[0].name == "w0000"
