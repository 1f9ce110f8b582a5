"""How far an experiment is, on standard error, so that the output is the report alone."""

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Watch:
    """In a ``with``: a bar, or a line for each step where nobody looks at a terminal."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task(name, total=None)
        self._total = 0
        self._done = 0

    def __enter__(self) -> "Watch":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def expect(self, num_steps: int) -> None:
        self._total += num_steps
        self._progress.update(self._task, total=self._total)

    def begin(self, what: str) -> None:
        told = f"{self._name}: {what}"
        self._progress.update(self._task, description=told)
        if not self._console.is_terminal:
            self.say(told)

    def end(self) -> None:
        self._done += 1
        self._progress.update(self._task, completed=self._done)

    def say(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
