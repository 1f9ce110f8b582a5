"""A worker's search for cores: its share of those that are free, or as many as it was told to take."""

from collections.abc import Collection
from pathlib import Path

from shared.cores import UsableCores
from worker.gate import GateBusy, gate
from worker.leases import CoreLease, lease_cores
from worker.presence import Presence
from worker.shares import Holder, Seeker, Settling, share_of


class CoreSearch:
    """``threads`` 0: a share. ``expected``: how many workers are meant to share, 0 if unknown."""

    def __init__(
        self,
        host_dir: Path,
        machine: UsableCores,
        presence: Presence,
        *,
        threads: int,
        expected: int,
    ) -> None:
        self._host_dir = host_dir
        self._machine = machine
        self._presence = presence
        self._me = Seeker(threads, threads or len(machine.cores), machine.candidates)
        self._settling = None if threads else Settling(expected)
        self._rivals: dict[str, Seeker | Holder] = {}
        self._num_free = 0
        self._is_shut_out = False

    @property
    def is_settling(self) -> bool:
        """Others may still come who want a share: that nothing was taken yet has no other reason."""
        return self._settling is not None and not self._is_shut_out

    @property
    def problem(self) -> str:
        """Why the last attempt took nothing."""
        if self._is_shut_out:
            return f"a process that was stopped keeps others out of {self._host_dir}"
        cores = ",".join(map(str, self._machine.candidates))
        if not self._me.threads:
            return f"none of the cores {cores} is free"
        return f"{self._me.threads} cores are wanted, of {cores} are free: {self._num_free}"

    def attempt(self, now_s: float) -> CoreLease | None:
        try:
            lease = self._attempt(now_s)
        except GateBusy:
            self._is_shut_out = True
            return None
        self._is_shut_out = False
        return lease

    def _attempt(self, now_s: float) -> CoreLease | None:
        with gate(self._host_dir):
            self._presence.say(self._me)
            self._rivals = {
                name: other
                for name, other in self._presence.others().items()
                if not set(other.cores).isdisjoint(self._me.cores)
            }
            if not self._has_settled(now_s):
                return None
            lease = lease_cores(self._host_dir, self._machine, self._count)
            if lease:
                self._presence.say(Holder(lease.cores))
            return lease

    def _has_settled(self, now_s: float) -> bool:
        if self._settling:
            seekers = {name for name, other in self._rivals.items() if isinstance(other, Seeker)}
            has_holder = len(seekers) < len(self._rivals)
            if not self._settling.is_over(seekers | {""}, has_holder, now_s):
                return False
            self._settling = None
        return True

    def _count(self, free: Collection[int]) -> int:
        self._num_free = len(free)
        seekers = [other for other in self._rivals.values() if isinstance(other, Seeker)]
        return self._me.threads or share_of(self._me, seekers, free)
