"""The snapshots of this host, as one worker uses them."""

from dataclasses import dataclass

from worker.snapshots.claims import Claims
from worker.snapshots.store import Store
from worker.snapshots.writer import Writer


@dataclass(frozen=True, slots=True)
class Shelf:
    store: Store
    claims: Claims
    writer: Writer

    def close(self) -> None:
        """Writes what is still to be written."""
        self.writer.close()
