"""Which snapshots go so that another one has room: the least recently used. Pure."""

from collections.abc import Iterable

from worker.snapshots.folder import StoredFile


def choose_evicted(files: Iterable[StoredFile], excess_bytes: int) -> list[StoredFile]:
    """At least so many bytes, in no more files than that takes; all of them if they are fewer."""
    chosen = []
    for file in sorted(files, key=lambda file: file.used_s):
        if excess_bytes <= 0:
            break
        chosen.append(file)
        excess_bytes -= file.num_bytes
    return chosen
