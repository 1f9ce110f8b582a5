"""A busy neighbour beside what is measured, on one of its cores."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from cli.line_process import LineProcess
from experiments.frame.probing import ProbeFailed

NEIGHBOURS = ("none", "busy")
_START_LIMIT_S = 60.0


@contextmanager
def neighbour(kind: str, core: int) -> Iterator[None]:
    """``kind`` is one of NEIGHBOURS."""
    if kind == "none":
        yield
        return
    process = LineProcess("experiments.probe.neighbour", str(core), error=ProbeFailed)
    try:
        process.line(time.monotonic() + _START_LIMIT_S)
        yield
    finally:
        process.end()
