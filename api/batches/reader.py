"""Reads an input file line by line, from any offset, without holding a line that is too long. Blocking."""

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from api.files.store import storage_errors

_SKIP_BYTES = 1_048_576


@dataclass(frozen=True, slots=True)
class RawLine:
    """``number`` counts from 1; ``end`` is the offset behind it."""

    number: int
    end: int
    raw: bytes
    is_too_long: bool


class LineReader:
    """Raises ``FileNotFoundError`` where there is no such file."""

    def __init__(self, path: Path, max_line_bytes: int, *, lines: int = 0, offset: int = 0) -> None:
        self._max_line_bytes = max_line_bytes
        self._number = lines
        with storage_errors():
            self._file = path.open("rb")
            self._file.seek(offset)
        self._end = offset

    def __enter__(self) -> "LineReader":
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None
    ) -> None:
        self._file.close()

    def read(self, num_lines: int, num_bytes: int = _SKIP_BYTES) -> list[RawLine]:
        """So many, or fewer if they have so many bytes; none at the end of the file."""
        lines: list[RawLine] = []
        began = self._end
        while len(lines) < num_lines and self._end - began < num_bytes:
            line = self._next()
            if line is None:
                break
            lines.append(line)
        return lines

    def _next(self) -> RawLine | None:
        with storage_errors():
            raw = self._file.readline(self._max_line_bytes + 1)
            if not raw:
                return None
            self._end += len(raw)
            is_too_long = len(raw) > self._max_line_bytes and not raw.endswith(b"\n")
            piece = raw
            while is_too_long and piece and not piece.endswith(b"\n"):
                piece = self._file.readline(_SKIP_BYTES)
                self._end += len(piece)
        self._number += 1
        return RawLine(self._number, self._end, b"" if is_too_long else raw, is_too_long)
