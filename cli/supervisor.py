"""Keeps a set of children alive, and ends them in order.

One loop in one thread: it wakes for a signal or after a short pause, kills what neither works nor dies,
reaps, restarts what its policy allows, and says when all have announced themselves.
"""

import logging
import signal
import time
from collections.abc import Callable, Sequence
from threading import Event
from types import FrameType

from cli.child import Child
from shared.errors import SetupError
from shared.logs import say

_POLL_S = 0.05
_LOOK_EVERY_S = 0.5
_HURRY_AFTER_S = 2.0
_KILL_AFTER_S = 5.0


class Supervisor:
    """``children`` in the order of their start; they are stopped by ``stop`` in the order given."""

    def __init__(
        self, children: Sequence[Child], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._children = list(children)
        self._clock = clock
        self._wake = Event()
        self._next_look_s = 0.0
        self.num_stop_requests = 0

    def install_signal_handlers(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.num_stop_requests += 1
        self._wake.set()

    @property
    def is_stopping(self) -> bool:
        return self.num_stop_requests > 0

    def start(self, *children: Child) -> None:
        for child in children:
            child.start(self._clock())

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Tends the children until the condition holds or a stop is requested. Raises ``SetupError``
        with the reason when a child cannot be kept alive."""
        while not self.is_stopping and not condition():
            self._look()
            self._tend()
            self._pause()

    def stop(self, groups: Sequence[Sequence[Child]], drain_s: float) -> None:
        """Group by group: SIGTERM, then SIGKILL to what is still there after its time, which is
        ``drain_s`` for the first group. A further stop request kills at once. What a later group
        waits for does not come any more, so it is soon told to hurry."""
        for i, group in enumerate(groups):
            for child in group:
                child.signal(signal.SIGTERM)
            end_s = self._clock() + (drain_s if i == 0 else _KILL_AFTER_S)
            hurry_s = self._clock() + _HURRY_AFTER_S if i else float("inf")
            while any(child.is_running for child in group):
                if self._clock() >= hurry_s:
                    hurry_s = float("inf")
                    for child in group:
                        if child.hurries:
                            child.signal(signal.SIGTERM)
                if self._clock() >= end_s or self.num_stop_requests > 1:
                    for child in group:
                        child.signal(signal.SIGKILL)
                self._look()
                self._restart_others(groups[i + 1 :])
                self._pause()
            for child in group:
                child.reap()

    def _restart_others(self, groups: Sequence[Sequence[Child]]) -> None:
        """What drains needs Redis and the gateway until it is done."""
        if self.num_stop_requests <= 1:
            for group in groups:
                self._tend(group)

    def _look(self) -> None:
        now_s = self._clock()
        if now_s < self._next_look_s:
            return
        self._next_look_s = now_s + _LOOK_EVERY_S
        for child in self._children:
            if complaint := child.complaint(now_s):
                words = f"{child.name} {complaint}: it is killed"
                say(words, head="up: ", level=logging.WARNING)
                child.is_condemned = True
                child.signal(signal.SIGKILL)

    def _tend(self, children: Sequence[Child] | None = None) -> None:
        for child in self._children if children is None else children:
            if child.process is None:
                if child.policy.started_s and self._clock() >= child.policy.next_start_s:
                    child.start(self._clock())
                continue
            code = child.reap()
            if code is not None and not child.policy.died(code, self._clock()):
                raise SetupError(_epitaph(child, code))

    def _pause(self) -> None:
        self._wake.wait(_POLL_S)
        self._wake.clear()


def _epitaph(child: Child, code: int) -> str:
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
    times = "" if child.policy.num_deaths <= 1 else f" {child.policy.num_deaths} times"
    words = "\n".join(f"  {line}" for line in child.last_words)
    return f"{child.name} {how}{times} before it was ready" + (
        f"; it said:\n{words}" if words else ""
    )
