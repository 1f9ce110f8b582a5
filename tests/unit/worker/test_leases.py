from pathlib import Path

import pytest

from shared.errors import SetupError
from tests.machines import plain_machine
from worker.gate import gate
from worker.leases import CoreLease, lease_cores


def lease(host_dir: Path, count: int, num_cores: int = 4) -> CoreLease | None:
    with gate(host_dir):
        return lease_cores(host_dir, plain_machine(num_cores), lambda _: count)


def test_leases_are_disjoint_and_come_back(tmp_path: Path) -> None:
    first, second = lease(tmp_path, 2), lease(tmp_path, 1)
    assert first is not None
    assert second is not None
    assert (first.cores, second.cores) == ((0, 1), (2,))
    assert lease(tmp_path, 2) is None
    first.release()
    again = lease(tmp_path, 3)
    assert again is not None
    assert again.cores == (0, 1, 3)
    again.release()
    second.release()


def test_a_lease_that_cannot_be_whole_holds_nothing(tmp_path: Path) -> None:
    assert lease(tmp_path, 3, num_cores=2) is None
    both = lease(tmp_path, 2, num_cores=2)
    assert both is not None
    both.release()


def test_cores_beyond_the_mask_are_never_taken(tmp_path: Path) -> None:
    """Another worker's lock files lie in the same folder."""
    wide = lease(tmp_path, 3)
    assert wide is not None
    wide.release()
    assert lease(tmp_path, 2, num_cores=1) is None


def test_what_is_free_is_counted_while_nobody_else_can_take_it(tmp_path: Path) -> None:
    first = lease(tmp_path, 1)
    seen: list[list[int]] = []

    def count(free: object) -> int:
        seen.append(sorted(free))  # type: ignore[call-overload]
        return 0

    with gate(tmp_path):
        assert lease_cores(tmp_path, plain_machine(4), count) is None
    assert seen == [[1, 2, 3]]
    assert first is not None
    first.release()


def test_a_host_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    with pytest.raises(SetupError) as caught, gate(in_the_way):
        pass
    assert f"MINI_VLLM_HOST_DIR={in_the_way} cannot be used: Not a directory" in str(caught.value)


def test_the_mode_of_a_host_directory_is_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with gate(tmp_path):
        pass
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777
