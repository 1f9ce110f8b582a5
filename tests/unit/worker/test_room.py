import os
from pathlib import Path

import pytest

from shared.cores import memory_rooms
from shared.errors import SetupError
from shared.settings import load_settings
from tests.models import model_path
from worker.room import cached_bytes, check_room

MIB = 1 << 20


def machine(root: Path, *, limit_bytes: int, used_bytes: int, stat: str = "") -> Path:
    """With a container of that limit."""
    files = {
        "proc/meminfo": "MemAvailable: 64000000 kB\n",
        "proc/self/cgroup": "0::/docker/x\n",
        "sys/fs/cgroup/docker/x/memory.max": f"{limit_bytes}\n",
        "sys/fs/cgroup/docker/x/memory.current": f"{used_bytes}\n",
        "sys/fs/cgroup/docker/x/memory.stat": stat,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def is_in_memory(path: Path) -> bool:
    """On a tmpfs, which has nowhere to drop a page to."""
    device = path.stat().st_dev
    number = f" {os.major(device)}:{os.minor(device)} "
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return any(number in mount and " - tmpfs " in mount for mount in mounts)


@pytest.mark.model
def test_a_container_that_is_too_small_for_the_default_model(tmp_path: Path) -> None:
    root = machine(tmp_path, limit_bytes=300 * MIB, used_bytes=60 * MIB)
    settings = load_settings(context_tokens=4096)
    with pytest.raises(SetupError, match="limit of this container leaves 252 MB"):
        check_room(settings, model_path(), root)
    check_room(load_settings(context_tokens=512, slots=2), model_path(), root)
    check_room(settings, model_path())  # this very machine runs it in other tests


def test_file_pages_of_a_container_are_no_use_of_its_memory(tmp_path: Path) -> None:
    stat = f"anon 1\nactive_file {20 * MIB}\ninactive_file {10 * MIB}\n"
    root = machine(tmp_path, limit_bytes=100 * MIB, used_bytes=90 * MIB, stat=stat)
    rooms = [
        {r.is_container: r.free_bytes for r in memory_rooms(root, counts_active_files=counts)}
        for counts in (False, True)
    ]
    assert [room[True] for room in rooms] == [20 * MIB, 40 * MIB]
    assert rooms[0][False] == 64_000_000 * 1024


def test_what_is_in_the_page_cache_is_told_from_what_is_not(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(8 * MIB))
    assert cached_bytes(path) == 8 * MIB
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if not is_in_memory(path):
        # Somebody else may read it in between.
        assert cached_bytes(path) < 8 * MIB or is_in_memory(path)
    (tmp_path / "empty").touch()
    assert cached_bytes(tmp_path / "empty") == 0
