"""What a supervisor does about deaths: when to start again, and when to give up; and how long it bears
a child that neither works nor dies. Pure; times are monotonic."""

from dataclasses import dataclass

from shared.exit_codes import EXIT_CONFIG, EXIT_GIVEN_UP

MIN_BACKOFF_S = 0.5
MAX_BACKOFF_S = 10.0
#: A child that has lived so long starts with a clean slate: it serves, and is missed while it waits.
STABLE_S = 15.0
MAX_DEATHS_BEFORE_READY = 5


def counts_as_death(exit_code: int, is_condemned: bool) -> bool:
    """Whether an end counts against the jobs that a worker held: not what an operator asked for (a
    stop that could not be signed off, a SIGSTOP that the supervisor put an end to)."""
    return not is_condemned and exit_code not in (0, EXIT_GIVEN_UP)


#: An observer who did not look for so long was stopped himself, and cannot say what went on.
MAX_GAP_S = 3.0


@dataclass(slots=True)
class RestartPolicy:
    """Of one child."""

    was_ready: bool = False
    num_deaths: int = 0
    started_s: float = 0.0
    next_start_s: float = 0.0

    def started(self, now_s: float) -> None:
        self.started_s = now_s

    def ready(self) -> None:
        self.was_ready = True

    def died(self, exit_code: int, now_s: float) -> bool:
        """Whether to start it again, at ``next_start_s``; ``False``: give up."""
        if not self.was_ready and exit_code == EXIT_CONFIG:
            return False
        if self.was_ready and now_s - self.started_s >= STABLE_S:
            self.num_deaths = 0
        self.num_deaths += 1
        if not self.was_ready and self.num_deaths >= MAX_DEATHS_BEFORE_READY:
            return False
        backoff_s = min(MAX_BACKOFF_S, MIN_BACKOFF_S * 2 ** (self.num_deaths - 1))
        self.next_start_s = now_s + backoff_s
        return True


@dataclass(slots=True)
class Patience:
    """Runs out when something is seen for longer than ``limit_s`` without a break."""

    limit_s: float
    _since_s: float | None = None
    _seen_s: float = float("-inf")

    def is_out(self, is_so: bool, now_s: float) -> bool:
        """One look; after a ``True`` it begins anew."""
        was_away = now_s - self._seen_s > MAX_GAP_S
        self._seen_s = now_s
        if not is_so:
            self._since_s = None
            return False
        if self._since_s is None or was_away:
            self._since_s = now_s
        if now_s - self._since_s <= self.limit_s:
            return False
        self.begin_anew()
        return True

    def begin_anew(self) -> None:
        self._since_s = None
