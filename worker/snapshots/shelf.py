"""The snapshots of this host, as one worker uses them."""

from dataclasses import dataclass

from worker.cache_figures import CacheFigures
from worker.snapshots.claims import Claims
from worker.snapshots.store import Store
from worker.snapshots.writer import Writer


@dataclass(frozen=True, slots=True)
class Shelf:
    store: Store
    claims: Claims
    writer: Writer

    def tell(self, figures: CacheFigures) -> None:
        """What is counted here, into what the worker reports."""
        self.store.refresh()
        own = self.store.figures
        figures.snapshots_written = own.num_written
        figures.snapshot_bytes_written = own.bytes_written
        figures.snapshots_evicted = own.num_evicted
        figures.snapshots_refused = own.num_refused + self.writer.num_refused
        figures.num_snapshots = self.store.num_files
        figures.snapshot_bytes = self.store.total_bytes

    def close(self) -> None:
        """Writes what is still to be written."""
        self.writer.close()
