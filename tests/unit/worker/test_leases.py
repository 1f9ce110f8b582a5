from pathlib import Path

from worker.leases import lease_cores


def test_leases_are_disjoint_and_come_back(tmp_path: Path) -> None:
    first = lease_cores(tmp_path, [0, 2, 1, 3], 2)
    second = lease_cores(tmp_path, [0, 2, 1, 3], 1)
    assert first is not None
    assert second is not None
    assert (first.cores, second.cores) == ((0, 2), (1,))
    assert lease_cores(tmp_path, [0, 2, 1, 3], 2) is None
    first.release()
    again = lease_cores(tmp_path, [0, 2, 1, 3], 3)
    assert again is not None
    assert again.cores == (0, 2, 3)
    again.release()
    second.release()


def test_a_lease_that_cannot_be_whole_holds_nothing(tmp_path: Path) -> None:
    assert lease_cores(tmp_path, [0, 1], 3) is None
    both = lease_cores(tmp_path, [0, 1], 2)
    assert both is not None
    both.release()
