"""The snapshots of this host as their files say: listed and cleared beside workers that run. Of a model
no more is known than its fingerprint."""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shared.cache_scopes import kind_of
from shared.settings import Settings
from worker.snapshots.folder import Folder, StoredFile
from worker.snapshots.limits import max_snapshot_bytes
from worker.snapshots.names import parse_name
from worker.snapshots.reading import read_header
from worker.snapshots.record import BadRecord

Kind = Literal["public", "all", "key", "job", "unknown"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    name: str
    fingerprint: str  #: of the model and all that its states depend on
    scope: str
    kind: Kind
    tokens: int
    bytes: int
    used_at: float  #: when it was written or started from last; seconds since 1970

    def unused_s(self, now_s: float) -> float:
        return max(0.0, now_s - self.used_at)


def snapshots_folder(settings: Settings) -> Path:
    from worker.caching import SNAPSHOTS_FOLDER  # here: it takes the engine's modules along

    return settings.host_dir / SNAPSHOTS_FOLDER


def existing_part(folder: Path) -> Path:
    """Of a folder that may not be there yet: where it would be made."""
    whole = folder.absolute()
    return next(path for path in (whole, *whole.parents) if os.path.exists(path))


def limit_bytes(settings: Settings) -> int:
    """As a worker that started now would have it; nothing is made for that. Raises ``OSError``."""
    return max_snapshot_bytes(settings.cache_max_bytes, existing_part(settings.host_dir))


def list_snapshots(folder: Path) -> list[Snapshot]:
    """Those used last first. None where no worker has kept any. Raises ``OSError``."""
    if not folder.is_dir():
        return []
    found = [_read(folder, file) for file in Folder(folder).scan()]
    return sorted((s for s in found if s), key=lambda s: (-s.used_at, s.name))


def choose(
    snapshots: Iterable[Snapshot], *, older_than_s: float, takes_jobs: bool, now_s: float
) -> list[Snapshot]:
    """Those to clear. Without ``takes_jobs`` what jobs that were parked will go on from is left. Pure."""
    return [
        snapshot
        for snapshot in snapshots
        if snapshot.unused_s(now_s) >= older_than_s and (takes_jobs or snapshot.kind != "job")
    ]


def clear(folder: Path, *, older_than_s: float = 0.0, takes_jobs: bool = False) -> list[Snapshot]:
    """What was removed. Who has one open keeps it until then. Raises ``OSError``."""
    found = list_snapshots(folder)
    chosen = choose(found, older_than_s=older_than_s, takes_jobs=takes_jobs, now_s=time.time())
    for snapshot in chosen:
        (folder / snapshot.name).unlink(missing_ok=True)
    if folder.is_dir():
        place = Folder(folder)
        with place.locked() as is_locked:
            if is_locked:  # else whoever makes room there does the same
                place.remove_leftovers()
    return chosen


def _read(folder: Path, file: StoredFile) -> Snapshot | None:
    """``None`` for one that has gone meanwhile. One that cannot be read is of an unknown kind: the next
    worker that meets it removes it."""
    parts = parse_name(file.name)
    assert parts is not None, "a scan has snapshots only"
    fingerprint, scope, num_tokens = parts.fingerprint_part, "", parts.num_tokens
    try:
        header = read_header(folder / file.name)
        fingerprint, scope, num_tokens = header.fingerprint, header.scope, len(header.tokens)
    except FileNotFoundError:
        return None
    except BadRecord:
        pass
    return Snapshot(
        name=file.name,
        fingerprint=fingerprint,
        scope=scope,
        kind=kind_of(scope),
        tokens=num_tokens,
        bytes=file.num_bytes,
        used_at=file.used_s,
    )
