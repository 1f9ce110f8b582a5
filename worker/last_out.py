"""The last worker of a host gives the memory of its snapshots back when it stops."""

import logging
import os
from contextlib import suppress
from pathlib import Path

from shared.cache_scopes import kind_of
from shared.host import WORKERS_FOLDER, is_held
from worker.snapshots.folder import Folder
from worker.snapshots.reading import read_header
from worker.snapshots.record import BadRecord

log = logging.getLogger(__name__)


def clear_if_last(host_dir: Path, snapshots: Path) -> int:
    """How many were removed; for a worker that has signed off in ``host_dir``. What parked jobs will go
    on from stays, and after a crash everything does."""
    if not snapshots.is_dir() or _has_worker(host_dir / WORKERS_FOLDER):
        return 0
    folder, num_removed = Folder(snapshots), 0
    for name in folder.names():
        with suppress(OSError, BadRecord):
            if kind_of(read_header(snapshots / name).scope) != "job":
                folder.remove(name)
                num_removed += 1
    log.info("the last worker of this host: %d snapshots removed", num_removed)
    return num_removed


def _has_worker(folder: Path) -> bool:
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                if is_held(fd):
                    return True
            finally:
                os.close(fd)
    return False
