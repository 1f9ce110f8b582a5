"""What a store counts of what it did."""

from dataclasses import dataclass


@dataclass(slots=True)
class StoreFigures:
    """Of this process, since it began."""

    num_written: int = 0
    bytes_written: int = 0
    num_evicted: int = 0
    num_refused: int = 0  #: there was no room
    num_torn: int = 0  #: files that were no snapshots, though they were named so
