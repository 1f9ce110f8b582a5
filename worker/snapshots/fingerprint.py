"""What a snapshot is good for: one model, one build, one kind of context, one boot of one machine."""

import hashlib
import json
import os
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


def content_hash(path: Path, folder: Path) -> str:
    """SHA-256 of a file, remembered in ``folder`` while its inode, size and time stay the same."""
    status = path.stat()
    facts = (path.resolve(), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    note = folder / hashlib.blake2b(repr(facts).encode(), digest_size=16).hexdigest()
    with suppress(OSError):
        known = note.read_text()
        if len(known) == 64 and set(known) <= set("0123456789abcdef"):
            return known
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = note.with_suffix(f".{os.getpid()}")
        temporary.write_text(digest)
        temporary.chmod(0o600)
        temporary.rename(note)
    return digest
