"""Core leases: one lock file per core in the host directory. The kernel frees them on any death.

Whoever starts workers on one host directory, no two workers share a core.
"""

import fcntl
import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from shared.cores import UsableCores
from worker.gate import CORES_FOLDER, open_lock
from worker.placement import choose_cores


class CoreLease:
    """The cores of one worker; held until released, or until this process is gone."""

    def __init__(self, cores: tuple[int, ...], files: list[int]) -> None:
        self.cores = cores
        self._files = files

    def release(self) -> None:
        for fd in self._files:
            os.close(fd)
        self._files = []


def lease_cores(
    host_dir: Path, machine: UsableCores, count_for: Callable[[Collection[int]], int]
) -> CoreLease | None:
    """As many as ``count_for`` wants of those that are free, or ``None`` if they are fewer.

    To be called within the gate, so that two workers never hold half of what each needs.
    """
    files = _lock_free(host_dir, machine.candidates)
    chosen: tuple[int, ...] = ()
    try:
        count = count_for(files.keys())
        if count <= len(files):
            chosen = choose_cores(files.keys(), count, machine)
    finally:
        for core in files.keys() - set(chosen):
            os.close(files[core])
    return CoreLease(chosen, [files[core] for core in chosen]) if chosen else None


def pin(cores: Sequence[int]) -> None:
    """This thread and all it starts run on these cores only: call it before the model is loaded."""
    os.sched_setaffinity(0, set(cores))


def _lock_free(host_dir: Path, cores: Sequence[int]) -> dict[int, int]:
    """Core -> descriptor of its lock, which nobody else had."""
    files: dict[int, int] = {}
    for core in cores:
        fd = open_lock(host_dir / CORES_FOLDER / f"core-{core}.lock")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
        else:
            files[core] = fd
    return files
