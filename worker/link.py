"""The worker's line to Redis: one round trip per step, repeated until Redis answers.

What is sent bears being sent twice. A pop whose reply was lost is undone by ``reclaim``.
"""

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import (
    ExecAbortError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import TimeoutError as RedisTimeoutError

from shared.keys import bell_key, stream_key
from shared.scripts import run_script, run_scripts
from shared.stream import Buried, Entry, Transcript, append_call, read_transcript, verdicts

log = logging.getLogger(__name__)

#: Errors that pass by themselves: the call is repeated.
_PASSING = (
    RedisConnectionError,
    RedisTimeoutError,
    ReadOnlyError,
    OutOfMemoryError,
    ExecAbortError,  # a transaction that met one of the others
)
_MAX_PAUSE_S = 1.0
_RECLAIM_EVERY_S = 5.0
_JOB_ID = re.compile(rb"[0-9a-f]{32}")


class GivenUp(Exception):
    """Redis did not come back in the time that was left."""


@dataclass(frozen=True, slots=True)
class Popped:
    """A job that is ours now; times in ms of Redis' clock."""

    job_id: str
    attempt: int
    created_ms: int
    started_ms: int
    now_ms: int
    count: int
    first_token_ms: int | None
    deadline_ms: int | None
    seed: int
    num_deaths: int | None = None  #: of a suspect, which is to run alone
    owner: str = ""

    @classmethod
    def from_reply(cls, reply: list[Any]) -> "Popped":
        first, deadline = reply[6], reply[7]
        return cls(
            job_id=reply[0].decode(),
            attempt=int(reply[1]),
            created_ms=int(reply[2]),
            started_ms=int(reply[3]),
            now_ms=int(reply[4]),
            count=int(reply[5]),
            first_token_ms=int(first) if first else None,
            deadline_ms=int(deadline) if deadline else None,
            seed=int(reply[8]),
            num_deaths=int(reply[9]) if reply[9] else None,
            owner=reply[10].decode(),
        )


class Link:
    def __init__(
        self,
        client: Redis,
        *,
        incarnation: str,
        model: str,
        slots: int,
        result_ttl_s: int,
        patience: int,
        may_wait: Callable[[], bool],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """``may_wait`` is asked before each repetition: whether to go on waiting for Redis."""
        self._client = client
        self._incarnation = incarnation
        self._model = model
        self._slots = slots
        self._result_ttl_s = result_ttl_s
        self._patience = patience
        self._may_wait = may_wait
        self._clock = clock
        self._reclaimed_s = clock()

    def exchange(
        self, entries: Sequence[Entry], held: Sequence[str], want: int, give_way: int = 0
    ) -> tuple[dict[str, str], list[Popped]]:
        """Appends the events and takes up to ``want`` jobs; ``held`` are the jobs this worker has, of
        which ``give_way`` would make room for jobs of higher priority. Raises ``Buried`` or
        ``GivenUp``."""
        # What ends in this very step is still ours.
        known = {*held, *(entry.job_id for entry in entries)}
        calls = [append_call(self._incarnation, self._result_ttl_s, entries)] if entries else []
        if want or give_way:
            load = (len(held), self._slots, want, self._patience, self._result_ttl_s, give_way)
            calls.append(("pop", (self._incarnation, self._model, *load)))
        if not calls:
            return {}, []

        def go(is_repetition: bool) -> list[Any]:
            # Now and then in any case: a connection may break, or Redis forget, without an error here.
            if is_repetition or self._clock() - self._reclaimed_s >= _RECLAIM_EVERY_S:
                run_script(self._client, "reclaim", self._incarnation, *known)
                self._reclaimed_s = self._clock()
            return run_scripts(self._client, calls)

        replies = self._until_answered(go)
        if b"buried" in replies:
            raise Buried
        stops = verdicts(replies[0]) if entries else {}
        return stops, _popped(replies[-1]) if want or give_way else []

    def read_transcript(self, job_id: str) -> Transcript:
        entries = self._until_answered(lambda _: self._client.xrange(stream_key(job_id)))
        return read_transcript(entries)

    def park(self, job_id: str, attempt: int) -> None:
        self._until_answered(
            lambda _: run_script(self._client, "park", self._incarnation, job_id, attempt)
        )

    def wait_for_bell(self, timeout_s: float) -> None:
        """Until a job may be there."""
        try:
            self._client.blpop([bell_key(self._incarnation)], timeout=timeout_s)
        except _PASSING:
            sleep(0.1)

    def _until_answered(self, go: Callable[[bool], Any]) -> Any:
        pause_s, is_repetition = 0.05, False
        while True:
            try:
                reply = go(is_repetition)
                if is_repetition:
                    log.info("redis answers again")
                return reply
            except RedisError as error:
                if not is_passing(error):
                    raise
                if not is_repetition:
                    log.warning("redis does not answer, holding on: %s", error)
                is_repetition = True
            if not self._may_wait():
                raise GivenUp
            sleep(pause_s)
            pause_s = min(_MAX_PAUSE_S, pause_s * 2)


def _popped(rows: list[list[Any]]) -> list[Popped]:
    """Without what was in a queue and is no job: it harms nobody else."""
    for row in rows:
        if len(row) == 1:
            words = "%s was in a queue and is no whole job of ours; it was dropped"
            log.warning(words, _named(row[0]))
    return [Popped.from_reply(row) for row in rows if len(row) > 1]


def _named(entry: bytes) -> str:
    """What has not the form of an id may be anything, a prompt too."""
    if _JOB_ID.fullmatch(entry):
        return f"job {entry.decode()}"
    return f"an entry of {len(entry)} bytes"


def is_passing(error: RedisError) -> bool:
    """Whether the error is about Redis' state (away, loading, full) rather than our request."""
    if isinstance(error, _PASSING):
        return True
    return isinstance(error, ResponseError) and str(error).startswith(("BUSY", "MISCONF"))
