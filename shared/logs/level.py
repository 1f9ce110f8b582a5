"""The level that an operator sets while the service runs: kept in Redis, taken over by each process.

Each looks once a second, with what it does in Redis anyway. Without one, its own setting holds.
"""

import logging
from typing import Any, get_args

from redis import Redis
from redis.exceptions import ResponseError

from shared.keys import LOG_LEVEL
from shared.logs import Level, set_level

log = logging.getLogger(__name__)

LEVELS: tuple[Level, ...] = get_args(Level)


class LevelFollower:
    """``setting`` is what this process logs by itself, and was configured with."""

    def __init__(self, setting: Level) -> None:
        self._setting: Level = setting
        self._level: Level = setting
        self._is_refused = False

    def follow(self, client: Redis) -> None:
        """Blocking. Redis errors pass through, but for a refusal: to log is not worth to do without
        what follows."""
        try:
            raw: Any = client.get(LOG_LEVEL)
            self._is_refused = False
        except ResponseError as error:
            if not self._is_refused:
                log.warning("the log level is not followed: %s", error)
            self._is_refused, raw = True, None
        level = read_level(raw)
        if (level or self._setting) != self._level:
            self._take_over(level or self._setting, "it was set" if level else "as in its settings")

    def _take_over(self, level: Level, why: str) -> None:
        set_level("info")  # else nobody would read that there is to be less to read
        log.info("the log level is %s now, %s; it was %s", level, why, self._level)
        set_level(level)
        self._level = level


def read_level(raw: bytes | None) -> Level | None:
    """``None`` also for what is no level: Redis may hold anything."""
    text = (raw or b"").decode(errors="replace")
    return next((level for level in LEVELS if level == text), None)
