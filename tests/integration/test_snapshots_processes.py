"""Several processes on one folder of snapshots: they write at once, and one dies in the middle."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service import wait_until
from worker.snapshots.claims import Claims
from worker.snapshots.store import Store

KIB = 1024
#: Header and state of what WRITE_MANY writes.
FILE_BYTES = 4096 + 16000
FINGERPRINT = "0123456789abcdef" * 2
START = f"""
import sys, time
from pathlib import Path
from worker.snapshots.folder import TemporaryFile
from worker.snapshots.store import Store
store = Store(Path(sys.argv[1]), fingerprint="{FINGERPRINT}", max_bytes=int(sys.argv[2]), ttl_s=600)
number = int(sys.argv[3])
"""
WRITE_MANY = """
for i in range(150):
    store.put("a", [number, i] * 20, memoryview(bytes([number]) * 16000), first_position=0)
    for match in store.match([number, i] * 20, ["a"])[:1]:
        state = store.open(match.entry)
        if state is not None:
            with state:
                assert bytes(state.buffer) == bytes([number]) * 16000
print("wrote", store.figures.num_written)
"""
HANG = """
def hang(self, *parts):
    print("writing", flush=True)
    time.sleep(600)
TemporaryFile.write = hang
store.put("a", [number] * 20, memoryview(bytes(100_000)), first_position=0)
"""


def start(code: str, path: Path, max_bytes: int, number: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", START + code, str(path), str(max_bytes), str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def make_store(path: Path, max_bytes: int = 1024 * KIB) -> Store:
    return Store(path, fingerprint=FINGERPRINT, max_bytes=max_bytes, ttl_s=600)


def put(store: Store, number: int, num_bytes: int = 4000) -> bool:
    return store.put("a", [number] * 20, memoryview(bytes(num_bytes)), first_position=0)


def has(store: Store, number: int) -> bool:
    return bool(store.match([number] * 20, ["a"]))


def test_writers_at_the_limit_stay_below_it_and_lose_nothing_whole(tmp_path: Path) -> None:
    limit = 10 * FILE_BYTES
    processes = [start(WRITE_MANY, tmp_path, limit, number) for number in (1, 2, 3)]
    while any(process.poll() is None for process in processes):
        sizes = []
        for path in tmp_path.glob("*.kv"):
            try:
                sizes.append(path.stat().st_size)
            except FileNotFoundError:
                continue
        assert set(sizes) <= {FILE_BYTES}
    for process in processes:
        assert process.communicate()[0].startswith("wrote")
        assert process.returncode == 0
    store = make_store(tmp_path, limit)
    store.clean()
    store.refresh()
    assert 0 < store.total_bytes <= limit
    assert store.figures.num_evicted == 0
    assert store.figures.num_torn == 0
    assert len(store.entries()) == store.num_files
    assert [path for path in tmp_path.iterdir() if path.name.startswith(".writing")] == []


def test_what_a_killed_writer_leaves_is_removed_and_the_others_go_on(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    assert put(store, 1)
    process = start(HANG, tmp_path, 1024 * KIB, 2)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    [half] = tmp_path.glob(".writing-*")
    assert half.stat().st_size > 100_000
    store.clean()
    assert half.exists()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert half.exists()
    assert has(store, 1)
    assert not has(store, 2)
    assert put(store, 3)  # makes room, and finds the leftover by that
    assert not half.exists()
    assert (has(store, 1), has(store, 3)) == (True, True)


def test_a_process_that_was_stopped_inside_the_lock_costs_a_snapshot_not_the_engine(
    tmp_path: Path,
) -> None:
    store = make_store(tmp_path)
    assert put(store, 1)
    fd = os.open(tmp_path / "lock", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    assert not put(store, 2)
    store.clean()
    assert has(store, 1)
    assert store.figures.num_refused == 1
    os.close(fd)
    assert put(store, 2)


@pytest.fixture
def tiny_folder(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "tiny"
    path.mkdir()
    options = ["-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)]
    if os.geteuid() or subprocess.run(["mount", *options], capture_output=True).returncode:
        pytest.skip("no mount is permitted here")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_full_tmpfs_evicts_and_then_refuses_but_never_kills(tiny_folder: Path) -> None:
    store = make_store(tiny_folder, 10_000 * KIB)
    assert put(store, 1, 100_000)
    assert put(store, 2, 100_000)
    assert put(store, 3, 100_000)
    assert store.figures.num_evicted == 1
    assert (has(store, 1), has(store, 2), has(store, 3)) == (False, True, True)
    assert not put(store, 4, 300_000)
    assert store.figures.num_refused == 1
    assert list(tiny_folder.glob(".writing-*")) == []
    assert put(store, 5, 100_000)
    [match] = store.match([5] * 20, ["a"])
    state = store.open(match.entry)
    assert state is not None
    with state:
        assert bytes(state.buffer) == bytes(100_000)


CLAIM = f"""
import sys, time
from pathlib import Path
from worker.snapshots.claims import Claims
claims = Claims(Path(sys.argv[1]), fingerprint="{FINGERPRINT}")
claim = claims.claim("a", [1] * 40, 7)
print("claimed", flush=True)
time.sleep(600)
"""


def test_nobody_waits_for_a_claim_of_the_dead(tmp_path: Path) -> None:
    claims = Claims(tmp_path, fingerprint=FINGERPRINT)
    command = [sys.executable, "-c", CLAIM, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "claimed\n"
    [match] = claims.match([1] * 30 + [2], ["a"], start=0)
    assert (match.num_common, match.num_tokens, match.start) == (30, 40, 7)
    assert claims.is_live(match.name)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not claims.is_live(match.name), 10, "the kernel lets go of the lock")
    assert claims.match([1] * 30, ["a"], start=0) == []
    assert list(tmp_path.iterdir()) == []
