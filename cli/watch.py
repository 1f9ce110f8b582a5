"""What a supervisor looks for in a child that runs, but neither works nor dies."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cli.policy import Patience


@dataclass(slots=True)
class Watch:
    """``is_so`` is asked of the process with this id; ``complaint`` goes on with the child's name."""

    complaint: str
    is_so: Callable[[int], bool]
    patience: Patience


def watch_for_stop(limit_s: float) -> Watch:
    """A stopped process holds its port, its jobs and its cores, and nobody else would end it."""
    complaint = f"was stopped by a signal for more than {limit_s:g} s"
    return Watch(complaint, is_stopped, Patience(limit_s))


def is_stopped(pid: int) -> bool:
    """By SIGSTOP or its like. Not under a debugger (state t), which would lose what it looks at."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    # The name before it may have spaces and parentheses of its own.
    return stat.rpartition(b")")[2].split()[0] == b"T"
