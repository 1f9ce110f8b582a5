"""What a worker that starts waits for: Redis, and cores."""

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from redis.exceptions import RedisError

from shared.errors import SetupError
from shared.login import login_problem, rights_problem
from shared.redis_url import shown_url
from worker.gate import GateBusy
from worker.leases import CoreLease
from worker.link import is_passing
from worker.presence import Presence
from worker.search import CoreSearch
from worker.service import Drain

log = logging.getLogger("worker")

_POLL_S = 0.25


def when_redis_answers(url: str, action: Callable[[], None], drain: Drain) -> bool:
    """Does it as soon as Redis, which is at ``url``, lets it; ``False`` if told to stop before that.
    Raises ``SetupError`` where Redis refuses: a worker that starts is not to wait for that."""
    is_told = False
    while not drain.is_requested:
        try:
            action()
            return True
        except RedisError as error:
            refusal = login_problem(error) or rights_problem(error)
            if refusal or not is_passing(error):
                where = shown_url(url)
                raise SetupError(
                    f"Redis at {where} refuses this worker: {refusal or error}"
                ) from None
            if not is_told:
                log.warning("waiting for Redis: %s", error)
                is_told = True
        time.sleep(_POLL_S)
    return False


def appear(host_dir: Path, incarnation: str, drain: Drain) -> Presence | None:
    """``None`` if told to stop before this host's other workers let it in."""
    is_told = False
    while not drain.is_requested:
        try:
            return Presence(host_dir, incarnation)
        except GateBusy:
            if not is_told:
                log.warning("waiting: a process that was stopped keeps others out of %s", host_dir)
                is_told = True
    return None


def wait_for_cores(search: CoreSearch, drain: Drain, ready_fd: int | None) -> CoreLease | None:
    """``None`` if told to stop before cores were free."""
    is_told = False
    while not drain.is_requested:
        lease = search.attempt(time.monotonic())
        if lease:
            return lease
        if not is_told and not search.is_settling:
            log.info(
                "waiting for cores: %s; this worker takes over when one ends. To share the cores "
                "anew, stop all workers of this host and start them again",
                search.problem,
            )
            announce(ready_fd, "waiting")
            is_told = True
        time.sleep(_POLL_S)
    return None


def announce(ready_fd: int | None, word: str) -> None:
    """To the supervisor, if there is one."""
    if ready_fd is not None:
        os.write(ready_fd, f"{word}\n".encode())
