"""Core leases: one lock file per core in the host directory. The kernel frees them on any death.

Whoever starts workers on one host directory, no two workers share a core.
"""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path


class CoreLease:
    """The cores of one worker; held while the object lives."""

    def __init__(self, cores: tuple[int, ...], files: list[int]) -> None:
        self.cores = cores
        self._files = files

    def release(self) -> None:
        for fd in self._files:
            os.close(fd)
        self._files = []


def lease_cores(host_dir: Path, usable: Sequence[int], count: int) -> CoreLease | None:
    """The first ``count`` free cores in the order given, or ``None`` if not so many are free."""
    folder = host_dir / "cores"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # One at a time, so that two workers never hold half of what each needs.
    gate = _open(folder / "gate.lock")
    try:
        fcntl.flock(gate, fcntl.LOCK_EX)
        cores: list[int] = []
        files: list[int] = []
        for core in usable:
            if len(cores) == count:
                break
            fd = _open(folder / f"core-{core}.lock")
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                continue
            cores.append(core)
            files.append(fd)
        lease = CoreLease(tuple(cores), files)
        if len(cores) < count:
            lease.release()
            return None
        return lease
    finally:
        os.close(gate)


def pin(cores: Sequence[int]) -> None:
    """This thread and all it starts run on these cores only: call it before the model is loaded."""
    os.sched_setaffinity(0, set(cores))


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
