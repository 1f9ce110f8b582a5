"""How far a measurement is, for whoever waits: a bar with rate and time left, or a line for each run."""

import asyncio
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cli.bench.answers import Seen
from cli.bench.plan import Load, Plan

_LOOK_EVERY_S = 0.2


class Watch:
    """In a ``with``. On standard error, so that the output is the report alone."""

    def __init__(self, plan: Plan) -> None:
        self.console = Console(stderr=True)
        self._num_runs = len(plan.points) * plan.rounds * len(plan.servers)
        self._num_done = 0
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),  # addresses have brackets
            BarColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self._task = self._progress.add_task("connect", total=self._num_runs, rate="")

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

    def say(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def begin(self, what: str) -> None:
        told = f"{self._num_done + 1} of {self._num_runs}: {what}"
        self._progress.update(self._task, description=told, rate="")
        if not self.console.is_terminal:
            self.say(told)

    def end(self) -> None:
        self._num_done += 1
        self._progress.update(self._task, completed=self._num_done)

    async def follow(self, load: Load, seen: Seen) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            took_s = time.monotonic() - seen.began_s
            ended = sum(bool(answer.has_usage or answer.error) for answer in seen.answers)
            part = _part_done(load, ended, took_s)
            self._progress.update(
                self._task,
                completed=self._num_done + part,
                rate=f"{ended}{_of(load)} requests, {ended / took_s:.1f}/s",
            )


def _part_done(load: Load, ended: int, took_s: float) -> float:
    if load.num_requests:
        return min(1.0, ended / load.num_requests)
    return min(1.0, took_s / load.duration_s) if load.duration_s else 0.0


def _of(load: Load) -> str:
    return f" of {load.num_requests}" if load.num_requests else ""
