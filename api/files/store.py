"""Files in a folder, bounded together. Blocking; knows nothing of HTTP, batches or Redis.

A file is its content (``<id>``) and its record (``<id>.json``), which is written last and taken away
first: what has no record is not there. Several gateways may share the folder. The bound may be passed
by what uploads at the same moment write between two looks at the folder.
"""

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from api.files.record import FILE_ID, FileRecord
from shared.errors import FileNotStored, StorageFull, StorageUnusable

log = logging.getLogger(__name__)

#: As which an empty file counts, so that the number of files is bounded too.
_LEAST_BYTES = 65_536
#: Written between two looks at how full the folder is.
_LOOK_EVERY_BYTES = 8_388_608
#: What holds records; it counts with the least bytes of their contents.
_RECORDS = (".json", ".json.new")
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
#: Longer than any upload or batch leaves its part-file untouched.
_ABANDONED_S = 2 * 86_400


@contextmanager
def storage_errors() -> Iterator[None]:
    """What the file system says, as errors of ours."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise StorageFull("The disk of the files is full; nothing was kept.") from None
        log.error("the folder of the files cannot be used: %s", error)
        raise StorageUnusable from None


class Incoming:
    """A file that is being written; it is there once ``FileStore.publish`` has taken it."""

    def __init__(self, store: "FileStore", path: Path, file: BinaryIO) -> None:
        self.path = path
        self.num_bytes = 0
        self._store = store
        self._file = file
        self._unlooked_bytes = 0

    def write(self, piece: bytes) -> None:
        """Raises ``StorageFull``."""
        self._unlooked_bytes += len(piece)
        if self._unlooked_bytes > _LOOK_EVERY_BYTES:
            self._store.check_room(self._unlooked_bytes)
            self._unlooked_bytes = 0
        with storage_errors():
            self._file.write(piece)
        self.num_bytes += len(piece)

    def finish(self) -> None:
        with storage_errors():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    def discard(self) -> None:
        """Harmless after ``publish``."""
        try:
            self._file.close()
        except OSError:  # the disk is full, and it is not kept anyway
            log.debug("closing %s failed", self.path)
        self.path.unlink(missing_ok=True)


class FileStore:
    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    @property
    def folder(self) -> Path:
        """Made on the first need of it."""
        with storage_errors():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder

    def begin(self, file_id: str) -> Incoming:
        self.check_room(0)
        path = self.folder / f"{file_id}.part"
        with storage_errors():
            return Incoming(self, path, path.open("wb"))

    def check_room(self, num_bytes: int) -> None:
        """Raises ``StorageFull`` if so many more would pass the bound."""
        used = sum(
            max(size, _LEAST_BYTES) for name, size, _ in self._scan() if not name.endswith(_RECORDS)
        )
        if used + max(num_bytes, _LEAST_BYTES) > self._max_bytes:
            raise StorageFull(
                f"The files hold {used} of {self._max_bytes} bytes (file_store_max_bytes); delete "
                "some, or wait until some expire."
            )

    def publish(self, part: Path, record: FileRecord) -> None:
        """Again with the same record is harmless, also where the part has become the content."""
        with storage_errors():
            if part.exists():
                part.replace(self.path(record.id))
            fresh = self.folder / f"{record.id}.json.new"
            with fresh.open("w") as file:
                file.write(record.model_dump_json())
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._record_path(record.id))

    def get(self, file_id: str, now_s: float) -> FileRecord:
        """Raises ``FileNotStored``, also for one that has expired."""
        record = self._read(file_id) if FILE_ID.fullmatch(file_id) else None
        if record is None or record.expires_s <= now_s:
            raise FileNotStored
        return record

    def path(self, file_id: str) -> Path:
        return self._folder / file_id

    def records(self, now_s: float) -> list[FileRecord]:
        """Newest first."""
        ids = [name.removesuffix(".json") for name, _, _ in self._scan() if name.endswith(".json")]
        found = [self._read(file_id) for file_id in ids]
        there = [record for record in found if record and record.expires_s > now_s]
        return sorted(there, key=lambda record: (record.created_s, record.id), reverse=True)

    def delete(self, file_id: str) -> None:
        with storage_errors():
            self._record_path(file_id).unlink(missing_ok=True)
            self.path(file_id).unlink(missing_ok=True)

    def expired(self, now_s: float) -> list[str]:
        names = [name for name, _, _ in self._scan() if name.endswith(".json")]
        records = [self._read(name.removesuffix(".json")) for name in names]
        return [record.id for record in records if record and record.expires_s <= now_s]

    def drop_abandoned(self, now_s: float) -> int:
        """Parts that nobody goes on with, contents without a record; says how many."""
        names = {name for name, _, _ in self._scan()}
        abandoned = [
            name
            for name, _, changed_s in self._scan()
            if now_s - changed_s > _ABANDONED_S and not self._is_whole(name, names)
        ]
        for name in abandoned:
            (self._folder / name).unlink(missing_ok=True)
        return len(abandoned)

    @staticmethod
    def _is_whole(name: str, names: set[str]) -> bool:
        """What is neither ours by its name is left alone."""
        if FILE_ID.fullmatch(name):
            return f"{name}.json" in names
        if name.endswith(".json"):
            return name.removesuffix(".json") in names
        return not name.endswith((".part", ".json.new"))

    def _scan(self) -> list[tuple[str, int, float]]:
        """Name, bytes, and when it changed."""
        found = []
        with suppress(FileNotFoundError), storage_errors(), os.scandir(self._folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    stat = entry.stat()
                    found.append((entry.name, stat.st_size, stat.st_mtime))
        return found

    def _record_path(self, file_id: str) -> Path:
        return self._folder / f"{file_id}.json"

    def _read(self, file_id: str) -> FileRecord | None:
        try:
            with storage_errors():
                return FileRecord.model_validate_json(self._record_path(file_id).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None
