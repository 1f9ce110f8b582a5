"""The state of a snapshot as memory that is its file: nothing is read before it is used."""

import ctypes
import mmap
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class State:
    """``buffer`` is a ctypes array of ``size`` bytes, good until the state is closed. It stays whole
    when the file is removed meanwhile."""

    def __init__(self, mapping: mmap.mmap, size: int) -> None:
        self._mapping = mapping
        self.size = size
        self.buffer: Any = (ctypes.c_uint8 * size).from_buffer(mapping)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.buffer = None
        with suppress(BufferError):  # somebody still looks at it; it goes with the last reference
            self._mapping.close()


def map_state(path: Path, offset: int, size: int) -> State:
    """Raises ``OSError``, also if the file is shorter than that: behind its end is a bus error."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_size < offset + size:
            raise OSError(f"{path} is shorter than its header says")
        # ctypes asks for memory that can be written to; what is written stays in this process.
        return State(mmap.mmap(fd, size, access=mmap.ACCESS_COPY, offset=offset), size)
    finally:
        os.close(fd)
