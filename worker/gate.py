"""The host directory: whoever looks at it and changes it does so alone."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shared.errors import SetupError
from shared.host import WORKERS_FOLDER

CORES_FOLDER = "cores"
#: Who is inside stays for milliseconds, unless its process was stopped there (SIGSTOP, a freezer).
_PATIENCE_S = 2.0
_POLL_S = 0.01


class GateBusy(Exception):
    """Somebody inside does not come out; to be tried again."""


@contextmanager
def gate(host_dir: Path) -> Iterator[None]:
    """Makes the directory where it is missing. Raises ``SetupError`` if it cannot be used, also for
    what fails inside, and ``GateBusy``."""
    try:
        for name in (CORES_FOLDER, WORKERS_FOLDER):
            (host_dir / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = open_lock(host_dir / CORES_FOLDER / "gate.lock")
        try:
            _enter(fd)
            yield
        finally:
            os.close(fd)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        todo = "name a directory that this user can write to"
        if error.errno == errno.ENOSPC:
            todo = "make room in it (in Compose: HOST_DIR_SIZE)"
        raise SetupError(
            f"MINI_VLLM_HOST_DIR={host_dir} cannot be used: {error.strerror}{where}; {todo}"
        ) from None


def _enter(fd: int) -> None:
    """Polls: a ``flock`` that waits goes on after a signal whose handler returns, so that a worker
    which is told to stop would not."""
    end_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end_s:
                raise GateBusy from None
            time.sleep(_POLL_S)


def open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
