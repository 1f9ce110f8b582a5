"""How workers that start together share out the cores of their host. Pure; time is an argument."""

from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass

#: So long must nobody new have come before the first worker takes its share.
_QUIET_S = 1.0
#: For longer than this nobody waits for others to come.
_MAX_SETTLING_S = 15.0


@dataclass(frozen=True, slots=True)
class Seeker:
    """A worker without cores yet."""

    threads: int  #: wanted: exactly so many; 0: a share
    at_most: int  #: what its affinity and quota let it use
    cores: tuple[int, ...]  #: that it may take


@dataclass(frozen=True, slots=True)
class Holder:
    cores: tuple[int, ...]


def share_of(me: Seeker, rivals: Iterable[Seeker], free: Collection[int]) -> int:
    """How many of the free cores are mine, if every rival is to have its share of them too."""
    others = [rival for rival in rivals if not set(rival.cores).isdisjoint(free)]
    num_left = len(free)
    for threads in sorted(rival.threads for rival in others):
        if threads <= num_left:  # else it waits, and cores that are free now are not to wait for it
            num_left -= threads
    limits = sorted(rival.at_most for rival in others if not rival.threads)
    num_sharing = len(limits) + 1
    for limit in limits:
        if limit <= num_left // num_sharing:  # what it cannot use is for the others
            num_left -= limit
            num_sharing -= 1
    return max(1, min(me.at_most, num_left // num_sharing))


class Settling:
    """Whether all who start now have come. ``expected``: how many that should be, 0 if unknown."""

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._known: set[str] = set()
        self._began_s: float | None = None
        self._quiet_since_s = 0.0

    def is_over(self, seekers: Set[str], has_holder: bool, now_s: float) -> bool:
        """``seekers`` by name, oneself among them. Where cores are held already, a new worker
        follows a dead one or is one too many: nobody else is to be waited for."""
        if self._began_s is None:
            self._began_s = now_s
        if not seekers <= self._known:
            self._known |= seekers
            self._quiet_since_s = now_s
        if has_holder or now_s - self._began_s >= _MAX_SETTLING_S:
            return True
        return now_s - self._quiet_since_s >= _QUIET_S and len(seekers) >= self._expected
