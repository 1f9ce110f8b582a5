"""A progress bar of bytes on standard error, for what takes longer than a moment."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

#: Bytes that are done, and about how many there will be; 0: not known.
Show = Callable[[int, int], None]


_POLL_S = 0.1


@contextmanager
def byte_progress(title: str) -> Iterator[Show]:
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        row = progress.add_task(title, total=None, visible=False)

        def show(done_bytes: int, total_bytes: int) -> None:
            # What was an estimate is never shown as more than all.
            total = max(total_bytes, done_bytes) or None
            progress.update(row, completed=done_bytes, total=total, visible=True)

        yield show


def wait_showing(process: "subprocess.Popen[bytes]", show: Callable[[], object]) -> None:
    """Until it ends; whatever ends the waiting before ends it, too."""
    try:
        while process.poll() is None:
            show()
            try:
                process.wait(_POLL_S)
            except subprocess.TimeoutExpired:
                continue
    except BaseException:
        process.kill()
        process.wait()
        raise
