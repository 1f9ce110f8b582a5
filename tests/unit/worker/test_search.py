import fcntl
from pathlib import Path

import pytest

from tests.machines import plain_machine
from tests.seeker_process import seeking
from worker.gate import GateBusy
from worker.leases import CoreLease
from worker.presence import Presence
from worker.search import CoreSearch


class Worker:
    """One that seeks in this process, at times that the test says."""

    def __init__(
        self, host_dir: Path, name: str, *, num_cores: int = 4, threads: int = 0, at_most: int = 64
    ) -> None:
        self.presence = Presence(host_dir, name)
        machine = plain_machine(num_cores, at_most)
        self.search = CoreSearch(host_dir, machine, self.presence, threads=threads, expected=0)
        self.lease: CoreLease | None = None

    def cores_at(self, now_s: float) -> tuple[int, ...]:
        self.lease = self.lease or self.search.attempt(now_s)
        return self.lease.cores if self.lease else ()

    def meet(self, *others: "Worker") -> "Worker":
        """All begin to seek, and see each other, at 0."""
        for worker in (self, *others, self, *others):
            assert worker.cores_at(0.0) == ()
            assert worker.search.is_settling
        return self

    def end(self) -> None:
        if self.lease:
            self.lease.release()
        self.presence.close()


def test_one_that_is_kept_out_says_so_and_goes_on_when_it_is_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.gate._PATIENCE_S", 0.0)
    a = Worker(tmp_path, "a")
    with (tmp_path / "cores/gate.lock").open() as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        assert a.cores_at(0.0) == ()
        assert not a.search.is_settling
        assert a.search.problem == f"a process that was stopped keeps others out of {tmp_path}"
        with pytest.raises(GateBusy):
            Presence(tmp_path, "b")
    assert a.cores_at(1.0) == ()
    assert a.cores_at(2.0) == (0, 1, 2, 3)


def test_workers_that_start_together_share_the_cores(tmp_path: Path) -> None:
    a, b = Worker(tmp_path, "a", num_cores=5), Worker(tmp_path, "b", num_cores=5)
    a.meet(b)
    assert a.cores_at(0.9) == b.cores_at(0.9) == ()
    assert a.cores_at(1.0) == (0, 1)
    assert b.cores_at(1.0) == (2, 3, 4)


def test_one_too_many_waits_and_takes_what_the_dead_leave(tmp_path: Path) -> None:
    a, b, c = (Worker(tmp_path, name, num_cores=2) for name in "abc")
    a.meet(b, c)
    assert (a.cores_at(1.0), b.cores_at(1.0), c.cores_at(1.0)) == ((0,), (1,), ())
    assert not c.search.is_settling
    assert c.search.problem == "none of the cores 0,1 is free"
    b.end()
    assert c.cores_at(9.1) == (1,)


def test_the_successor_of_a_dead_one_takes_its_cores_at_once(tmp_path: Path) -> None:
    a, b = Worker(tmp_path, "a"), Worker(tmp_path, "b")
    a.meet(b)
    assert (a.cores_at(1.0), b.cores_at(1.0)) == ((0, 1), (2, 3))
    a.end()
    assert Worker(tmp_path, "c").cores_at(50.0) == (0, 1)


def test_a_quota_bounds_the_share_and_leaves_the_choice_of_cores(tmp_path: Path) -> None:
    a, b = (Worker(tmp_path, name, num_cores=8, at_most=2) for name in "ab")
    a.meet(b)
    assert (a.cores_at(1.0), b.cores_at(1.0)) == ((0, 1), (2, 3))


def test_a_number_of_threads_is_taken_at_once_or_waited_for(tmp_path: Path) -> None:
    a, b = Worker(tmp_path, "a", threads=3), Worker(tmp_path, "b", threads=2)
    assert a.cores_at(0.0) == (0, 1, 2)
    assert b.cores_at(0.0) == ()
    assert b.search.problem == "2 cores are wanted, of 0,1,2,3 are free: 1"
    a.end()
    assert b.cores_at(0.1) == (0, 1)


def test_a_seeker_that_was_killed_does_not_count(tmp_path: Path) -> None:
    mine = Worker(tmp_path, "mine")
    # The others expect so many that they only wait.
    with seeking(tmp_path, "ab", num_cores=4, expected=9) as others:
        for other in others:
            other.seek()
        mine.cores_at(0.0)
        for other in others:
            other.kill()
        assert mine.cores_at(9.0) == (0, 1, 2, 3)


@pytest.mark.parametrize("threads", [0, 2])
def test_a_kill_frees_the_cores_for_who_waits(tmp_path: Path, threads: int) -> None:
    with seeking(tmp_path, "a", num_cores=2, threads=threads) as (other,):
        assert other.seek().cores() == [0, 1]
        mine = Worker(tmp_path, "mine", num_cores=2, threads=threads)
        assert mine.cores_at(0.0) == ()
        other.kill()
        assert mine.cores_at(0.1) == (0, 1)


def test_processes_that_race_share_five_cores(tmp_path: Path) -> None:
    with seeking(tmp_path, "ab", num_cores=5, expected=2) as seekers:
        for seeker in seekers:
            seeker.seek()
        cores = [seeker.cores() for seeker in seekers]
    assert sorted(map(len, cores)) == [2, 3]
    assert sorted(cores[0] + cores[1]) == [0, 1, 2, 3, 4]
