"""The files of the snapshots' folder: listed, locked, made, removed. What they hold is ``record``'s."""

import errno
import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from worker.snapshots.names import parse_name

log = logging.getLogger(__name__)

_LOCK_NAME = "lock"
_TEMPORARY = ".writing-"
#: Whoever makes room is done in a few ms; a process that was stopped there must not stop the others.
_LOCK_PATIENCE_S = 0.1
_LOCK_POLL_S = 0.002
#: A folder that changed within the clock's tick of a scan may change again without a newer time.
_TICK_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class StoredFile:
    name: str
    num_bytes: int
    used_s: float


class TemporaryFile:
    """Has its full size from the start, for the others' sums, and a lock while its writer lives."""

    def __init__(self, folder: Path, num_bytes: int) -> None:
        self._folder = folder
        self._path = folder / f"{_TEMPORARY}{uuid4().hex}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._fd = os.open(self._path, flags, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._fd, num_bytes)
        except OSError:
            self.close()
            raise

    def write(self, *parts: bytes | memoryview) -> None:
        offset = 0
        for part in parts:
            view = memoryview(part)
            while view:
                count = os.pwrite(self._fd, view, offset)
                view, offset = view[count:], offset + count

    def rename(self, name: str) -> None:
        os.rename(self._path, self._folder / name)

    def close(self) -> None:
        """What was not renamed is removed."""
        with suppress(OSError):
            self._path.unlink()
        os.close(self._fd)


class Folder:
    def __init__(self, path: Path) -> None:
        """Raises ``OSError`` if it cannot be made, or is another user's, who could put states in it."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(path)
        self.path = path
        self.num_files = 0
        self.total_bytes = 0
        self._seen_ns = -1

    def names(self) -> list[str]:
        with suppress(OSError):
            return [name for name in os.listdir(self.path) if parse_name(name)]
        return []

    def scan(self) -> list[StoredFile]:
        """All snapshots; ``total_bytes`` counts what is being written too."""
        files, total, num_files = [], 0, 0
        with suppress(FileNotFoundError), os.scandir(self.path) as entries:
            for entry in entries:
                is_stored = parse_name(entry.name) is not None
                if not is_stored and not entry.name.startswith(_TEMPORARY):
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:  # gone meanwhile
                    continue
                total += status.st_size
                num_files += is_stored
                if is_stored:
                    files.append(StoredFile(entry.name, status.st_size, status.st_mtime))
        self.num_files, self.total_bytes = num_files, total
        return files

    def changes(self) -> list[StoredFile] | None:
        """All snapshots, or None if the folder is as it was when this was asked last."""
        try:
            modified_ns = self.path.stat().st_mtime_ns
        except OSError:
            return []
        if modified_ns == self._seen_ns:
            return None
        is_settled = time.time_ns() - modified_ns > _TICK_NS
        try:
            files = self.scan()
        except OSError as error:  # as it may be without descriptors: what is known stays known
            log.warning("snapshots cannot be listed: %s", error)
            return None
        self._seen_ns = modified_ns if is_settled else -1
        return files

    def look_again(self) -> None:
        """``changes`` lists them next time, whatever the time of the folder is."""
        self._seen_ns = -1

    def remove(self, name: str) -> None:
        with suppress(OSError):
            (self.path / name).unlink()

    def remove_leftovers(self) -> None:
        """Of writers that are gone. Within the lock: a new one is not locked by its writer yet."""
        for path in self.path.glob(f"{_TEMPORARY}*"):
            with suppress(OSError):
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
                finally:
                    os.close(fd)

    def make_temporary(self, num_bytes: int) -> TemporaryFile:
        return TemporaryFile(self.path, num_bytes)

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Whether the lock was to be had in time."""
        fd = os.open(self.path / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield _locks(fd)
        finally:
            os.close(fd)


def _locks(fd: int) -> bool:
    end_s = time.monotonic() + _LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end_s:
                return False
            time.sleep(_LOCK_POLL_S)


def _make_private(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another user", str(path))
        os.fchmod(fd, 0o700)
    finally:
        os.close(fd)
