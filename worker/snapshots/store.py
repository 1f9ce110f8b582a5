"""The folder of snapshots that all workers of a host share: written, found, opened, evicted.

A file is written beside its place and renamed into it, so that one with a snapshot's name is whole. The
folder's lock is held while room is made, never while a state is copied.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from worker.snapshots.chain import pack_tokens
from worker.snapshots.folder import Folder, StoredFile, TemporaryFile
from worker.snapshots.index import Entry, Index, Match
from worker.snapshots.mapped import State, map_state
from worker.snapshots.names import file_name, fingerprint_part, parse_name, scope_part
from worker.snapshots.record import ALIGNMENT_BYTES, BadRecord, Header, header_bytes, pack, unpack

log = logging.getLogger(__name__)


@dataclass(slots=True)
class StoreFigures:
    """Of this process, since it began."""

    num_written: int = 0
    bytes_written: int = 0
    num_evicted: int = 0
    num_refused: int = 0  #: there was no room
    num_torn: int = 0  #: files that were no snapshots, though they were named so


class Store:
    """For several threads: the index has a lock, which no copying is done under."""

    def __init__(
        self,
        path: Path,
        *,
        fingerprint: str,
        max_bytes: int,
        ttl_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises ``OSError`` if the folder cannot be made."""
        self._folder = Folder(path)
        self._fingerprint = fingerprint
        self._prefix = fingerprint_part(fingerprint) + "."
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._clock = clock
        self._lock = Lock()
        self._index = Index()
        self.figures = StoreFigures()

    @property
    def max_bytes(self) -> int:
        return self._max_bytes

    @property
    def num_files(self) -> int:
        """Of all models in this folder, as it was seen last."""
        return self._folder.num_files

    @property
    def total_bytes(self) -> int:
        return self._folder.total_bytes

    def match(self, tokens: Iterable[int], scopes: Sequence[str]) -> list[Match]:
        """What begins like these tokens, the longest first."""
        self.refresh()
        with self._lock:
            return self._index.match(tokens, scopes)

    def refresh(self) -> None:
        """Brings the index in line with the folder; cheap where nothing has changed."""
        with self._lock:
            files = self._folder.changes()
            if files is None:
                return
            ours = {file.name: file for file in files if file.name.startswith(self._prefix)}
            for entry in list(self._index):
                if entry.name not in ours:
                    self._index.remove(entry.name)
            for file in ours.values():
                if self._index.get(file.name) is None:
                    self._read(file)

    def entries(self) -> list[Entry]:
        """Of this fingerprint, as they were seen last."""
        with self._lock:
            return list(self._index)

    def open(self, entry: Entry) -> State | None:
        """None if it has gone. To be closed after use, as a context manager."""
        path = self._folder.path / entry.name
        try:
            header = _read_header(path)
            state = map_state(path, header.offset, header.state_bytes)
            os.utime(path)
        except (OSError, BadRecord):
            with self._lock:
                self._index.remove(entry.name)
            return None
        return state

    def put(
        self,
        scope: str,
        tokens: Iterable[int],
        state: memoryview,
        *,
        first_position: int,
        reusable: int | None = None,
        replaces_shorter: bool = False,
    ) -> bool:
        """Whether it is there then. ``replaces_shorter``: what it covers of this scope is removed."""
        packed = pack_tokens(tokens)
        name = file_name(self._fingerprint, scope, packed)
        header = pack(
            fingerprint=self._fingerprint,
            scope=scope,
            tokens=packed,
            reusable=len(packed) if reusable is None else reusable,
            first_position=first_position,
            state_bytes=len(state),
        )
        if self._touch(name):
            return True
        if not self._write(name, header, state):
            self.figures.num_refused += 1
            return False
        self.figures.num_written += 1
        self.figures.bytes_written += len(header) + len(state)
        if replaces_shorter:
            self.refresh()
            self._remove_covered(name)
        return True

    def remove(self, name: str) -> None:
        with self._lock:
            self._index.remove(name)
        self._folder.remove(name)

    def remove_scope(self, scope: str) -> int:
        """How many there were."""
        part = scope_part(scope)
        names = [name for name in self._folder.names() if _scope_of(name) == part]
        for name in names:
            self.remove(name)
        return len(names)

    def clean(self) -> None:
        """What dead writers left, what was not used for long, and what is beyond the limit."""
        self._folder.remove_leftovers()
        now_s = self._clock()
        for file in self._folder.scan():
            if now_s - file.used_s > self._ttl_s:
                self._evict(file)
        with suppress(OSError), self._folder.locked() as is_locked:
            if is_locked:
                self._make_room(0)

    def _write(self, name: str, header: bytes, state: memoryview) -> bool:
        num_bytes = len(header) + len(state)
        for is_last in (False, True):
            temporary = self._reserve(num_bytes, extra_bytes=num_bytes if is_last else 0)
            if temporary is None:
                return False
            try:
                temporary.write(header, state)
                temporary.rename(name)
                return True
            except OSError as error:  # the filesystem is fuller than we know: others use it too
                log.debug("a snapshot of %d bytes cannot be written: %s", num_bytes, error)
            finally:
                temporary.close()
        return False

    def _reserve(self, num_bytes: int, *, extra_bytes: int) -> TemporaryFile | None:
        try:
            with self._folder.locked() as is_locked:
                if not is_locked or not self._make_room(num_bytes, extra_bytes):
                    return None
                return self._folder.make_temporary(num_bytes)
        except OSError as error:
            log.debug("no room for a snapshot of %d bytes: %s", num_bytes, error)
            return None

    def _make_room(self, num_bytes: int, extra_bytes: int = 0) -> bool:
        """Within the folder's lock: the least recently used go first."""
        if num_bytes > self._max_bytes:
            return False
        files = sorted(self._folder.scan(), key=lambda file: file.used_s)
        excess = self._folder.total_bytes + num_bytes + extra_bytes - self._max_bytes
        if extra_bytes:  # the filesystem had no room, whatever the limit says
            excess = max(excess, num_bytes)
        for file in files:
            if excess <= 0:
                break
            self._evict(file)
            excess -= file.num_bytes
        return excess <= 0 or extra_bytes > 0

    def _evict(self, file: StoredFile) -> None:
        self.remove(file.name)
        self.figures.num_evicted += 1

    def _touch(self, name: str) -> bool:
        try:
            os.utime(self._folder.path / name)
        except OSError:
            return False
        return True

    def _remove_covered(self, name: str) -> None:
        with self._lock:
            new = self._index.get(name)
            others = [e for e in self._index if new and e.name != name and new.covers(e)]
        for entry in others:
            self.remove(entry.name)

    def _read(self, file: StoredFile) -> None:
        """Into the index; what is torn, foreign or of another version is removed."""
        path = self._folder.path / file.name
        try:
            header = _read_header(path)
            if header.fingerprint != self._fingerprint:
                return  # of another model whose name begins alike
            if header.file_bytes != file.num_bytes or _name_of(header) != file.name:
                raise BadRecord("another size or name than its header says")
        except FileNotFoundError:
            return
        except (OSError, BadRecord) as error:
            log.warning("%s is no snapshot and is removed: %s", path, error)
            self._folder.remove(file.name)
            self.figures.num_torn += 1
            return
        self._index.add(
            Entry(
                name=file.name,
                scope=header.scope,
                tokens=header.tokens,
                first_position=header.first_position,
                reusable=header.reusable,
                used_s=file.used_s,
            )
        )


def _name_of(header: Header) -> str:
    return file_name(header.fingerprint, header.scope, header.tokens)


def _scope_of(name: str) -> str | None:
    parts = parse_name(name)
    return parts.scope_part if parts else None


def _read_header(path: Path) -> Header:
    """Raises ``OSError`` or ``BadRecord``."""
    with path.open("rb", buffering=0) as file:
        first = file.read(ALIGNMENT_BYTES)
        # The length is not checked yet: no more is read than there is.
        rest = min(header_bytes(first), os.fstat(file.fileno()).st_size) - len(first)
        return unpack(first + file.read(rest) if rest > 0 else first)
