"""The heartbeat thread, which is also the watchdog.

It beats while the engine makes progress. When a step takes longer than the stall limit it falls
silent and ends the process: a decode that hangs cannot be interrupted from inside.
"""

import logging
import os
from collections.abc import Callable, Mapping
from threading import Event, Thread
from time import monotonic

from redis import Redis
from redis.exceptions import RedisError

from shared.exit_codes import EXIT_BURIED, EXIT_STALLED
from shared.logs.losses import log_lost
from shared.protocol import WorkerReport, to_wire
from shared.recovery import Sweeper
from shared.scripts import run_script

log = logging.getLogger(__name__)


class Pulse:
    """When the loop last went round. The longest step seen stretches the limit fivefold."""

    def __init__(self, stall_limit_s: float, clock: Callable[[], float] = monotonic) -> None:
        self._stall_limit_s = stall_limit_s
        self._clock = clock
        self._last_s = clock()
        self._longest_s = 0.0
        self._is_armed = False

    def touch(self) -> None:
        """The loop is alive (idle, or waiting for Redis)."""
        self._last_s = self._clock()
        self._is_armed = True

    def step_done(self) -> None:
        self._longest_s = max(self._longest_s, self._clock() - self._last_s)
        self.touch()

    @property
    def is_stalled(self) -> bool:
        limit_s = max(self._stall_limit_s, 5 * self._longest_s)
        return self._is_armed and self._clock() - self._last_s > limit_s


class Heart:
    def __init__(
        self,
        client: Redis,
        *,
        report: Callable[[], WorkerReport],
        pulse: Pulse,
        interval_s: float,
        ttl_s: float,
        sweeper: Sweeper,
        counts: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        """``counts`` are what nobody else counts, since this process began, by their names in the totals."""
        self._client = client
        self._sweeper = sweeper
        self._report = report
        self._counts = counts
        self._pulse = pulse
        self._interval_s = interval_s
        self._ttl_ms = round(ttl_s * 1000)
        self._stop = Event()
        self._thread = Thread(target=self._run, name="heart", daemon=True)
        self.also: Callable[[], None] | None = None  #: RQ's beat, once the worker takes jobs
        #: Done in every round, whether or not Redis answers: a sign of life for this host.
        self.sign: Callable[[], None] = lambda: None
        #: Done after each beat.
        self.follow_level: Callable[[Redis], None] = lambda _: None

    def register(self) -> None:
        """The first beat: from here on this incarnation is known. Redis errors pass through."""
        report = self._report()
        facts = (report.incarnation, self._ttl_ms, to_wire(report), report.model)
        run_script(self._client, "register", *facts)
        self._thread.start()

    def beat(self) -> None:
        """Ends the process if this incarnation was buried."""
        if not self._say():
            log.critical("declared dead by another process; exiting, its jobs go on elsewhere")
            os._exit(EXIT_BURIED)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def last_beat(self) -> None:
        """After ``stop``, before the burial: what was counted since the beat before is not lost."""
        try:
            self._say()
        except RedisError as error:
            log.warning("what was counted since the last heartbeat is lost: %s", error)

    def _say(self) -> bool:
        """Whether this incarnation lives, as Redis has it."""
        report = self._report()
        counted = [word for pair in self._counts().items() for word in pair]
        facts = (report.incarnation, self._ttl_ms, to_wire(report), report.model)
        return bool(run_script(self._client, "beat", *facts, *counted))

    def _bury_the_dead(self) -> None:
        """Workers of other hosts, which no supervisor of ours sees, while no gateway is there."""
        for incarnation, job_ids in self._sweeper.sweep(self._client).items():
            log_lost(incarnation, job_ids)

    def _run(self) -> None:
        while not self._stop.wait(self._interval_s):
            if self._pulse.is_stalled:
                log.critical("the engine has made no progress for too long; exiting")
                os._exit(EXIT_STALLED)
            try:
                self.sign()
                self.beat()
                self.follow_level(self._client)
                self._bury_the_dead()
                if self.also:
                    self.also()
            except RedisError as error:
                self._sweeper.failed()
                log.debug("heartbeat: %s", error)
            except Exception:  # a thread that ended here would have a healthy worker buried
                log.exception("heartbeat")
