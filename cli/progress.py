"""A progress bar of bytes on standard error, for what takes longer than a moment."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

#: Bytes that are done, and about how many there will be; 0: not known.
Show = Callable[[int, int], None]


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
