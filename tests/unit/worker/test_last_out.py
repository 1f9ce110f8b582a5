import fcntl
import os
from pathlib import Path

from shared.cache_scopes import of_job, public
from worker.last_out import clear_if_last
from worker.snapshots.store import Store


def fill(host_dir: Path) -> Path:
    folder = host_dir / "snapshots"
    store = Store(folder, fingerprint="f" * 32, max_bytes=2**30, ttl_s=600)
    for scope in (public(), "all", of_job("a")):
        assert store.put(scope, range(40), memoryview(b"state"), first_position=0)
    (host_dir / "workers").mkdir()
    return folder


def num_snapshots(folder: Path) -> int:
    return len(list(folder.glob("*.kv")))


def test_the_last_worker_removes_all_but_what_parked_jobs_go_on_from(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    (tmp_path / "workers" / "of-one-that-died").touch()
    assert clear_if_last(tmp_path, folder) == 2
    assert num_snapshots(folder) == 1


def test_while_another_worker_lives_everything_stays(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    fd = os.open(tmp_path / "workers" / "live", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        assert clear_if_last(tmp_path, folder) == 0
        assert num_snapshots(folder) == 3
    finally:
        os.close(fd)
    assert clear_if_last(tmp_path, folder) == 2


def test_a_host_without_snapshots_is_left_alone(tmp_path: Path) -> None:
    assert clear_if_last(tmp_path, tmp_path / "snapshots") == 0
