"""Whether there is memory for the model, before it is loaded."""

import os
from pathlib import Path

from shared.cores import memory_rooms
from shared.footprint import Footprint, check_fit, footprint_of
from shared.gguf_header import read_facts
from shared.settings import Settings

_SAMPLE_EVERY_BYTES = 1 << 20


def check_room(settings: Settings, path: Path, root: Path = Path("/")) -> None:
    """Raises ``SetupError`` if the model certainly does not fit. ``root`` lets tests make up a machine."""
    check_fit(
        read_facts(path),
        slots=settings.slots,
        context_tokens=settings.context_tokens,
        cached_bytes=cached_bytes(path),
        sharing=settings.weights_sharing,
        rooms=memory_rooms(root, counts_active_files=True),
    )


def expected_footprint(settings: Settings, path: Path) -> Footprint:
    return footprint_of(
        read_facts(path),
        slots=settings.slots,
        context_tokens=settings.context_tokens,
        sharing=settings.weights_sharing,
    )


def cached_bytes(path: Path) -> int:
    """About how much of a file is in the page cache, where another worker may have put it; all of it
    where that cannot be told. (mincore says so of any file that another user owns.)"""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size_bytes, buffer = os.fstat(fd).st_size, bytearray(1)
        samples = range(0, size_bytes, _SAMPLE_EVERY_BYTES)
        num_cached = 0
        for at in samples:
            try:
                os.preadv(fd, [buffer], at, os.RWF_NOWAIT)
                num_cached += 1
            except BlockingIOError:  # it would have to be read from the disk
                continue
        return size_bytes * num_cached // max(1, len(samples))
    except OSError:
        return size_bytes
    finally:
        os.close(fd)
