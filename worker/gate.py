"""The host directory: whoever looks at it and changes it does so alone."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shared.errors import SetupError
from shared.host import WORKERS_FOLDER

CORES_FOLDER = "cores"


@contextmanager
def gate(host_dir: Path) -> Iterator[None]:
    """Makes the directory where it is missing. Raises ``SetupError`` if it cannot be used, also for
    what fails inside."""
    try:
        for name in (CORES_FOLDER, WORKERS_FOLDER):
            (host_dir / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = open_lock(host_dir / CORES_FOLDER / "gate.lock")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise SetupError(
            f"MINI_VLLM_HOST_DIR={host_dir} cannot be used: {error.strerror}{where}; "
            "name a directory that this user can write to"
        ) from None


def open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
