"""What a snapshot is good for: one model, one build, one kind of context, one boot of one machine."""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def fingerprint(parts: Mapping[str, str | int | float]) -> str:
    """32 hex characters. With the boot's id, since a file that outlives a loss of power on a disk may
    be of its full size and empty."""
    boot_id = ""
    with suppress(OSError):
        boot_id = _BOOT_ID.read_text().strip()
    text = json.dumps({**parts, "boot_id": boot_id}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
