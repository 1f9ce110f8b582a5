"""Who notices that a worker is gone: every gateway and worker sweeps; the supervisor buries at once.

A sweeper trusts its own clock only, and only what it has seen for a while: an outage of Redis, a step of
its clock, or a pause of this very process makes every live worker look dead for a moment.
"""

from collections.abc import Callable
from time import monotonic
from typing import Any

from redis import Redis

from shared.keys import WORKERS, beat_key
from shared.scripts import run_script
from shared.settings import Settings


class Sweeper:
    """Buries a worker that it has seen without a heartbeat for half a TTL, once Redis has answered
    without a break for two."""

    def __init__(
        self,
        *,
        heartbeat_ttl_s: float,
        max_deaths: int,
        result_ttl_s: int,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._heartbeat_ttl_s = heartbeat_ttl_s
        self._max_deaths = max_deaths
        self._result_ttl_s = result_ttl_s
        self._clock = clock
        self._answering_since_s: float | None = None
        self._answered_s = float("-inf")
        self._lapsed_since_s: dict[str, float] = {}  #: by incarnation, when it was seen first

    @classmethod
    def from_settings(cls, settings: Settings) -> "Sweeper":
        return cls(
            heartbeat_ttl_s=settings.heartbeat_ttl_s,
            max_deaths=settings.max_deaths,
            result_ttl_s=settings.result_ttl_s,
        )

    def failed(self) -> None:
        """Redis did not answer."""
        self._answering_since_s = None
        self._lapsed_since_s.clear()

    def sweep(self, client: Redis) -> dict[str, list[str]]:
        """Incarnation -> jobs that went back to their queues, for each worker found dead. To be called
        every second or so. Redis errors pass through, and start the waiting anew."""
        try:
            lapsed = _lapsed(client)
            now_s = self._clock()
            # NOTE: measured after the answer, so that a call that took long counts as a break too.
            if now_s - self._answered_s > self._heartbeat_ttl_s:
                self.failed()
            self._answered_s = now_s
            if self._answering_since_s is None:
                self._answering_since_s = now_s
            since_s = self._lapsed_since_s
            self._lapsed_since_s = {name: since_s.get(name, now_s) for name in lapsed}
            if now_s - self._answering_since_s < 2 * self._heartbeat_ttl_s:
                return {}
            dead = [
                name
                for name, seen_s in self._lapsed_since_s.items()
                if now_s - seen_s >= self._heartbeat_ttl_s / 2
            ]
            buried = {name: self.bury(client, name, only_if_lapsed=True) for name in dead}
        except Exception:
            self.failed()
            raise
        return {name: jobs for name, jobs in buried.items() if jobs is not None}

    def bury(
        self, client: Redis, incarnation: str, *, only_if_lapsed: bool, counts: bool = True
    ) -> list[str] | None:
        """The jobs that moved, or ``None`` if there was nothing to bury. ``counts``: whether the
        death counts against the jobs that the worker held."""
        limits = (self._max_deaths, self._result_ttl_s, int(counts))
        reply = run_script(client, "bury", incarnation, int(only_if_lapsed), *limits)
        return None if reply is None else [job_id.decode() for job_id in reply]


def _lapsed(client: Redis) -> list[str]:
    members: Any = client.smembers(WORKERS)
    # What cannot be read is no incarnation of ours, and must not keep the others from being seen.
    incarnations = [name.decode(errors="replace") for name in members]
    with client.pipeline(transaction=False) as pipe:
        for incarnation in incarnations:
            pipe.exists(beat_key(incarnation))
        return [i for i, beats in zip(incarnations, pipe.execute(), strict=True) if not beats]
