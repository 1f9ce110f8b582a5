"""How many bytes of snapshots a host may hold."""

import logging
import os
from pathlib import Path

from shared.cores import memory_available_bytes

log = logging.getLogger(__name__)

_FREE_MEMORY_PART = 1 / 4
#: The rest of a filesystem is left to the leases, and to whoever else uses it.
_FILESYSTEM_PART = 0.9


def max_snapshot_bytes(setting: int, folder: Path) -> int:
    """``setting`` 0: a quarter of the memory that is free, as containers and limits leave it. Pages of a
    tmpfs are memory, of the container that wrote them. Raises ``OSError`` if there is no folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = os.statvfs(folder)
    filesystem_bytes = int(status.f_blocks * status.f_frsize * _FILESYSTEM_PART)
    if not setting:
        return min(int(memory_available_bytes() * _FREE_MEMORY_PART), filesystem_bytes)
    if setting > filesystem_bytes:
        log.warning(
            "MINI_VLLM_CACHE_MAX_BYTES is %d, but the filesystem of %s has room for %d bytes only",
            setting,
            folder,
            filesystem_bytes,
        )
    return min(setting, filesystem_bytes)
