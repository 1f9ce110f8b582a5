"""Who notices that a worker is gone: every gateway and worker sweeps; the supervisor buries at once.

Sweeping starts only after Redis has answered without a break for two heartbeat TTLs, since an outage
makes every live worker look dead.
"""

from typing import Any

from redis import Redis

from shared.keys import WORKERS, beat_key
from shared.scripts import run_script
from shared.settings import Settings


class Sweeper:
    def __init__(self, *, heartbeat_ttl_s: float, max_deaths: int, result_ttl_s: int) -> None:
        self._heartbeat_ttl_s = heartbeat_ttl_s
        self._max_deaths = max_deaths
        self._result_ttl_s = result_ttl_s
        self._answering_since_s: float | None = None
        self._answered_s = 0.0

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

    def sweep(self, client: Redis, now_s: float) -> dict[str, list[str]]:
        """Incarnation -> jobs that went back to their queues, for each worker found dead.
        ``now_s`` is monotonic. Redis errors pass through, and start the wait anew."""
        try:
            lapsed = _lapsed(client)
            # Nobody looked for a while (this process was stopped, say): what Redis did is not known.
            if now_s - self._answered_s > self._heartbeat_ttl_s:
                self._answering_since_s = None
            if self._answering_since_s is None:
                self._answering_since_s = now_s
            self._answered_s = now_s
            if now_s - self._answering_since_s < 2 * self._heartbeat_ttl_s:
                return {}
            buried = {name: self.bury(client, name, only_if_lapsed=True) for name in lapsed}
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
    names: Any = client.smembers(WORKERS)
    incarnations = [name.decode() for name in names]
    with client.pipeline(transaction=False) as pipe:
        for incarnation in incarnations:
            pipe.exists(beat_key(incarnation))
        return [i for i, beats in zip(incarnations, pipe.execute(), strict=True) if not beats]
