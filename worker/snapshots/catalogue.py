"""What a folder of snapshots holds for one fingerprint, kept in line with what others do to it."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from threading import Lock

from worker.snapshots.folder import Folder, StoredFile
from worker.snapshots.index import Entry, Index, Match
from worker.snapshots.names import fingerprint_part
from worker.snapshots.reading import read_entry
from worker.snapshots.record import BadRecord
from worker.snapshots.store_figures import StoreFigures

log = logging.getLogger(__name__)


class Catalogue:
    """For several threads. Files that are no snapshots are removed when they are seen."""

    def __init__(self, folder: Folder, fingerprint: str, figures: StoreFigures) -> None:
        self._folder = folder
        self._fingerprint = fingerprint
        self._prefix = fingerprint_part(fingerprint) + "."
        self._lock = Lock()
        self._index = Index()
        self._figures = figures

    def match(self, tokens: Iterable[int], scopes: Sequence[str]) -> list[Match]:
        """What begins like these tokens, the longest first."""
        self.refresh()
        with self._lock:
            return self._index.match(tokens, scopes)

    def refresh(self) -> None:
        """Cheap where nothing has changed."""
        with self._lock:
            files = self._folder.changes()
            if files is None:
                return
            ours = {file.name: file for file in files if file.name.startswith(self._prefix)}
            for entry in list(self._index):
                if entry.name not in ours:
                    self._index.remove(entry.name)
            for file in ours.values():
                known = self._index.get(file.name)
                # Another time: it was used, or another one of the same tokens took its place.
                if known is None or known.used_s != file.used_s:
                    self._read(file)

    def entries(self) -> list[Entry]:
        """As they were seen last."""
        with self._lock:
            return list(self._index)

    def get(self, name: str) -> Entry | None:
        self.refresh()
        with self._lock:
            return self._index.get(name)

    def covered_by(self, new: Entry) -> list[Entry]:
        """All others that it makes needless."""
        self.refresh()
        with self._lock:
            return [e for e in self._index if e.name != new.name and new.covers(e)]

    def forget(self, name: str) -> None:
        with self._lock:
            self._index.remove(name)

    def doubt(self, name: str) -> None:
        """It is not what it was: forgotten, and the folder is looked through again."""
        with self._lock:
            self._index.remove(name)
            self._folder.look_again()

    def _read(self, file: StoredFile) -> None:
        """Into the index; what is torn, foreign or of another version is removed."""
        path = self._folder.path / file.name
        known = self._index.get(file.name)
        try:
            entry = read_entry(path, file, self._fingerprint)
        except FileNotFoundError:
            entry = None
        except OSError as error:  # such as too many open files: no fault of this one
            log.warning("%s cannot be read now: %s", path, error)
            self._folder.look_again()
            entry = None
        except BadRecord as error:
            log.warning("%s is no snapshot and is removed: %s", path, error)
            self._folder.remove(file.name)
            self._figures.num_torn += 1
            entry = None
        if entry is None:
            self._index.remove(file.name)
        elif known is not None and replace(known, used_s=entry.used_s) == entry:
            self._index.touch(file.name, entry.used_s)
        else:
            self._index.add(entry)
