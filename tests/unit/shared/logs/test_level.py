import logging
from collections.abc import Iterator

import pytest
from redis.exceptions import ResponseError

from shared.keys import LOG_LEVEL
from shared.logs import set_level
from shared.logs.level import LevelFollower, read_level
from tests.logs import kept_lines


class Store:
    """As much of Redis as is asked."""

    def __init__(self, level: bytes | None = None) -> None:
        self.level = level
        self.refusal: Exception | None = None

    def get(self, key: str) -> bytes | None:
        assert key == LOG_LEVEL
        if self.refusal:
            raise self.refusal
        return self.level


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    names = ("", "api", "cli", "shared", "worker")
    before = {name: logging.getLogger(name).level for name in names}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def messages(lines: list[dict[str, str]]) -> list[str]:
    return [line["message"] for line in lines]


def test_a_level_is_taken_over_once_and_given_back() -> None:
    set_level("info")
    follower, store = LevelFollower("info"), Store()
    with kept_lines() as lines:
        for level in (None, b"debug", b"debug", b"error", None):
            store.level = level
            follower.follow(store)  # type: ignore[arg-type]
    assert messages(lines) == [
        "the log level is debug now, it was set; it was info",
        "the log level is error now, it was set; it was debug",
        "the log level is info now, as in its settings; it was error",
    ]
    assert logging.getLogger("worker.service").getEffectiveLevel() == logging.INFO


def test_a_refusal_is_said_once_and_the_setting_holds() -> None:
    set_level("info")
    follower, store = LevelFollower("info"), Store(b"debug")
    with kept_lines() as lines:
        follower.follow(store)  # type: ignore[arg-type]
        store.refusal = ResponseError("WRONGTYPE")
        follower.follow(store)  # type: ignore[arg-type]
        follower.follow(store)  # type: ignore[arg-type]
    assert messages(lines)[1:] == [
        "the log level is not followed: ResponseError: WRONGTYPE",
        "the log level is info now, as in its settings; it was debug",
    ]


def test_what_was_set_holds_for_our_own_and_others_are_heard_from_a_warning_on() -> None:
    LevelFollower("info").follow(Store(b"debug"))  # type: ignore[arg-type]
    assert logging.getLogger("api.hub").isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("httpx").isEnabledFor(logging.INFO)
    LevelFollower("info").follow(Store(b"error"))  # type: ignore[arg-type]
    assert not logging.getLogger("api.hub").isEnabledFor(logging.WARNING)
    assert not logging.getLogger("httpx").isEnabledFor(logging.WARNING)


@pytest.mark.parametrize("raw", [None, b"", b"loud", b"DEBUG", b"\xff", b"debug\n"])
def test_what_is_no_level_is_none(raw: bytes | None) -> None:
    assert read_level(raw) is None
