"""The folder of snapshots that all workers of a host share: written, found, opened, evicted.

A file is written beside its place and renamed into it, so that one with a snapshot's name is whole. The
folder's lock is held while room is made, never while a state is copied.
"""

import errno
import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from worker.snapshots.catalogue import Catalogue
from worker.snapshots.chain import pack_tokens
from worker.snapshots.folder import Folder, StoredFile, TemporaryFile
from worker.snapshots.index import Entry, Match
from worker.snapshots.mapped import State
from worker.snapshots.names import file_name, parse_name, scope_part
from worker.snapshots.reading import open_state
from worker.snapshots.record import BadRecord, pack
from worker.snapshots.room import choose_evicted
from worker.snapshots.store_figures import StoreFigures

log = logging.getLogger(__name__)

_FULL = (errno.ENOSPC, errno.EDQUOT)


class Store:
    """For several threads: the catalogue has a lock, which no copying is done under."""

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
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._clock = clock
        self.figures = StoreFigures()
        self._catalogue = Catalogue(self._folder, fingerprint, self.figures)

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
        return self._catalogue.match(tokens, scopes)

    def refresh(self) -> None:
        """Brings ``entries`` in line with the folder; cheap where nothing has changed."""
        self._catalogue.refresh()

    def entries(self) -> list[Entry]:
        """Of this fingerprint, as they were seen last."""
        return self._catalogue.entries()

    def open(self, entry: Entry) -> State | None:
        """None if it has gone, or is another one by now. To be closed after use, as a context manager."""
        path = self._folder.path / entry.name
        try:
            state = open_state(path, entry, self._fingerprint)
        except (OSError, BadRecord) as error:
            log.debug("%s cannot be opened: %s", path, error)
            self._catalogue.doubt(entry.name)
            return None
        self._touch(entry.name)
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
        """Whether it is there then. ``replaces_shorter``: what it covers of this scope is removed.
        One of the same tokens that is good for less gives way to it."""
        packed = pack_tokens(tokens)
        reusable = len(packed) if reusable is None else reusable
        name = file_name(self._fingerprint, scope, packed)
        entry = Entry(name, scope, packed, first_position, reusable, self._clock())
        header = pack(
            fingerprint=self._fingerprint,
            scope=scope,
            tokens=packed,
            reusable=reusable,
            first_position=first_position,
            state_bytes=state.nbytes,
        )
        if not self._has(entry):
            if not state.nbytes or not self._write(name, header, state):
                self.figures.num_refused += 1
                return False
            self.figures.num_written += 1
            self.figures.bytes_written += len(header) + state.nbytes
        if replaces_shorter:
            for other in self._catalogue.covered_by(entry):
                self.remove(other.name)
        return True

    def remove(self, name: str) -> None:
        self._catalogue.forget(name)
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
        try:
            with self._folder.locked() as is_locked:
                if not is_locked:
                    log.info("snapshots are cleaned later: another process holds their lock")
                    return
                now_s = self._clock()
                for file in self._folder.scan():
                    if now_s - file.used_s > self._ttl_s:
                        self._evict(file)
                self._make_room(0)
        except OSError as error:
            log.warning("snapshots cannot be cleaned: %s", error)

    def _write(self, name: str, header: bytes, state: memoryview) -> bool:
        num_bytes = len(header) + state.nbytes
        for is_full in (False, True):
            try:
                temporary = self._reserve(num_bytes, is_full)
                if temporary is None:
                    return False
                with closing(temporary):
                    temporary.write(header, state)
                    temporary.rename(name)
                self._touch(name)
                return True
            except OSError as error:
                # Others use the filesystem too: it may be full before our limit is reached.
                if error.errno not in _FULL:
                    log.warning("a snapshot of %d bytes cannot be written: %s", num_bytes, error)
                    return False
        return False

    def _reserve(self, num_bytes: int, is_full: bool) -> TemporaryFile | None:
        with self._folder.locked() as is_locked:
            if not is_locked or not self._make_room(num_bytes, is_full):
                return None
            return self._folder.make_temporary(num_bytes)

    def _make_room(self, num_bytes: int, is_full: bool = False) -> bool:
        """Within the folder's lock: the least recently used go first, none if it were for nothing."""
        self._folder.remove_leftovers()
        files = self._folder.scan()
        excess = self._folder.total_bytes + num_bytes - self._max_bytes
        if num_bytes and excess > sum(file.num_bytes for file in files):
            return False
        for file in choose_evicted(files, max(excess, num_bytes) if is_full else excess):
            self._evict(file)
        return True

    def _evict(self, file: StoredFile) -> None:
        self.remove(file.name)
        self.figures.num_evicted += 1

    def _has(self, entry: Entry) -> bool:
        known = self._catalogue.get(entry.name)
        return known is not None and known.covers(entry) and self._touch(entry.name)

    def _touch(self, name: str) -> bool:
        now_ns = int(self._clock() * 1e9)
        try:
            os.utime(self._folder.path / name, ns=(now_ns, now_ns))
        except OSError:
            return False
        return True


def _scope_of(name: str) -> str | None:
    parts = parse_name(name)
    return parts.scope_part if parts else None
