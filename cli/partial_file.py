"""A file that appears under its name only when it is whole: until then it is a partial one beside it.

Whoever writes it keeps it locked, as do the processes it has write it, so that a second writer waits and
what a killed one left behind is told from what is being written.
"""

import fcntl
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shared.errors import SetupError

_SUFFIX = ".part"


class PartialFile:
    def __init__(self, target: Path, path: Path, fd: int) -> None:
        self.target = target
        self.path = path
        self.fd = fd  #: keeps the lock, in whoever has it
        self.is_kept = False

    def keep(self) -> None:
        """Under its own name, and on the disk. Raises ``OSError``."""
        os.fsync(self.fd)
        # NOTE: never over another file; whoever writes this one waits for our lock.
        if self.target.exists():
            raise FileExistsError(17, "there is such a file already", str(self.target))
        self.path.rename(self.target)
        self.is_kept = True
        folder_fd = os.open(self.target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder_fd)
        finally:
            os.close(folder_fd)


@contextmanager
def partial_file(target: Path, *, keeps_unfinished: bool = False) -> Iterator[PartialFile | None]:
    """None if the target is there, maybe by now: another process may have been writing it. What was not
    kept is removed, unless a later call is to go on with it. Raises ``OSError``."""
    path = target.with_name(f".{target.name}{_SUFFIX}")
    fd = _lock(path)
    try:
        if target.exists():
            path.unlink(missing_ok=True)
            yield None
            return
        partial = PartialFile(target, path, fd)
        try:
            yield partial
        finally:
            begun = keeps_unfinished and os.fstat(fd).st_size > 0
            if not partial.is_kept and not begun:
                path.unlink(missing_ok=True)
    finally:
        os.close(fd)


def remove_leftovers(folder: Path) -> None:
    """Of writers that were killed."""
    for path in folder.glob(f".*{_SUFFIX}"):
        with suppress(FileNotFoundError, PermissionError), path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # somebody writes it
                continue
            path.unlink(missing_ok=True)


def _lock(path: Path) -> int:
    """Waits for whoever has it."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(fd, fcntl.LOCK_EX)
        # It may have been renamed or removed while we waited.
        with suppress(FileNotFoundError):
            if os.stat(path).st_ino == os.fstat(fd).st_ino:
                return fd
        os.close(fd)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """SIGTERM goes the way of Ctrl-C, so that what was begun is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def check_disk(needed_bytes: int, free_bytes: int, folder: Path) -> None:
    """Raises ``SetupError``."""
    if needed_bytes > free_bytes:
        raise SetupError(
            f"{folder} has {free_bytes / 1e6:.0f} MB free and about {needed_bytes / 1e6:.0f} MB are "
            "needed: free some (`mini-vllm model rm --converted` removes converted copies), or set "
            "MINI_VLLM_MODEL_DIR"
        )
