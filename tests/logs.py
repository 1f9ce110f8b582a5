"""What a process would have written into its log, as objects."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shared.logs.formats import JsonFormat


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[dict[str, Any]] = []
        self.setFormatter(JsonFormat("test", {}))

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))


@contextmanager
def kept_lines(level: int = logging.DEBUG) -> Iterator[list[dict[str, Any]]]:
    """Of this process, while inside."""
    root, kept = logging.getLogger(), _Kept()
    before = root.level
    root.addHandler(kept)
    root.setLevel(level)
    try:
        yield kept.lines
    finally:
        root.removeHandler(kept)
        root.setLevel(before)


def parsed(lines: list[str]) -> list[dict[str, Any]]:
    """Of a log in JSON; every line has to be an object."""
    return [dict(json.loads(line)) for line in lines]
