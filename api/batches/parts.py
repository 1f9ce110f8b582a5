"""The output and error file of a batch while it is written, at offsets that Redis has on record.

Each holder writes files of its own, named by its fence: one that has lost the batch without knowing it
cannot spoil what its successor has copied. Blocking.
"""

import os
from pathlib import Path

from api.batches.record import Progress
from api.files.store import FileStore, storage_errors

OUTPUT, ERROR = "output", "error"
_COPY_BYTES = 4_194_304


class PartFiles:
    def __init__(self, store: FileStore, batch_id: str, fence: int) -> None:
        self._store = store
        self._batch_id = batch_id
        self._fence = fence

    def path(self, kind: str, fence: int | None = None) -> Path:
        whose = self._fence if fence is None else fence
        return self._store.folder / f"{self._batch_id}.{whose}.{kind}.part"

    def take_over(self, progress: Progress) -> Progress:
        """What was written so far, as this holder's. From the beginning, if it is not whole."""
        if progress.part == self._fence:
            return progress
        sizes = {OUTPUT: progress.output_bytes, ERROR: progress.error_bytes}
        if all(self._copy(kind, progress.part, size) for kind, size in sizes.items()):
            return progress.model_copy(update={"part": self._fence})
        for kind in sizes:
            self.path(kind).unlink(missing_ok=True)
        return Progress(part=self._fence)

    def _copy(self, kind: str, fence: int, num_bytes: int) -> bool:
        """Whether there was so much."""
        if not num_bytes:
            return True
        left = num_bytes
        try:
            with (
                storage_errors(),
                self.path(kind, fence).open("rb") as old,
                self.path(kind).open("wb") as new,
            ):
                while left and (piece := old.read(min(left, _COPY_BYTES))):
                    new.write(piece)
                    left -= len(piece)
                new.flush()
                os.fsync(new.fileno())
        except FileNotFoundError:
            return False
        return not left

    def forget(self, fence: int) -> None:
        """Those of a holder before."""
        if fence != self._fence:
            for kind in (OUTPUT, ERROR):
                self.path(kind, fence).unlink(missing_ok=True)

    def write(self, kind: str, offset: int, data: bytes) -> None:
        """On the disk when it returns; what stood after ``offset`` did not count."""
        if not data:
            return
        self._store.check_room(len(data))
        with storage_errors():
            fd = os.open(self.path(kind), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "wb") as file:  # of a descriptor: it truncates nothing
                file.seek(offset)
                file.truncate()
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
