"""What `doctor` says of the prefix cache: how much it may hold, and whether its filesystem has room."""

import os
from collections.abc import Iterator

from cli.cache_files import existing_part, limit_bytes
from cli.findings import Finding
from shared.settings import Settings

#: A snapshot of 1,000 tokens of the default model has 23 MB.
_SMALL_BYTES = 256_000_000
_FULL_PART = 0.95
_ROOM = "make room: mini-vllm cache clear, a larger HOST_DIR_SIZE (Compose), or MINI_VLLM_HOST_DIR"


def check_cache(settings: Settings) -> Iterator[Finding]:
    if not settings.prefix_cache:
        yield Finding("ok", "the prefix cache is off (MINI_VLLM_PREFIX_CACHE)")
        return
    try:
        limit, status = limit_bytes(settings), os.statvfs(existing_part(settings.host_dir))
    except OSError as error:
        what = f"the host directory {settings.host_dir} cannot be looked at: {error.strerror}"
        yield Finding("warn", what, "set MINI_VLLM_HOST_DIR")
        return
    yield Finding("ok", f"the prefix cache may hold {limit / 1e6:.0f} MB in {settings.host_dir}")
    total, free = status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize
    yield from room_findings(total, free)


def room_findings(total_bytes: int, free_bytes: int) -> Iterator[Finding]:
    """Of the filesystem of the host directory. Pure."""
    if not total_bytes:  # it has no size of its own
        return
    used = 1 - free_bytes / total_bytes
    what = f"its filesystem has {total_bytes / 1e6:.0f} MB and is {100 * used:.0f} % full"
    if total_bytes < _SMALL_BYTES:
        yield Finding("warn", f"{what}: few snapshots fit", _ROOM)
    elif used > _FULL_PART:
        yield Finding("warn", what, _ROOM)
    else:
        yield Finding("ok", what)
