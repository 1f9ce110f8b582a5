"""A job that clients of this gateway follow: its events so far, and who waits for more. No I/O: the hub
feeds it.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping

from api.sse import Frame, render
from shared.logs import about
from shared.protocol import EndEvent, Event, StartEvent, TokenEvent
from shared.stream import parse_entry

log = logging.getLogger(__name__)


class FollowedJob:
    """A job's events so far, in order and each once."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        self.events: list[Event] = []
        self._frames: list[Frame] = []
        self.num_tokens = 0
        self.num_followers = 0
        self.has_ended = False
        self.is_over = False  #: no event will follow
        self.cursor: bytes | str = "0-0"
        self.waiting: set[asyncio.Future[bool]] = set()

    def add(self, entry_id: bytes, fields: Mapping[bytes, bytes]) -> None:
        self.cursor = entry_id
        try:
            event = parse_entry(fields)
        except (KeyError, ValueError):
            words = "job %s: entry %r cannot be read"
            log.exception(words, self.job_id, entry_id, extra=about(job=self.job_id))
            return
        if self.has_ended:
            return
        match event:
            case StartEvent() if self.events:
                return
            case TokenEvent() if event.index < self.num_tokens:
                return  # written again after Redis lost its last second
            case TokenEvent():
                self.num_tokens = event.end_index
            case EndEvent():
                self.has_ended = self.is_over = True
        self.events.append(event)

    @property
    def frames(self) -> list[Frame]:
        """All events so far, rendered."""
        # Only the end needs to know how many tokens there were, and it is the last event.
        fresh = self.events[len(self._frames) :]
        self._frames += [render(event, self.num_tokens) for event in fresh]
        return self._frames

    def notify(self) -> None:
        for waiting in self.waiting:
            _answer(waiting, True)

    def finish(self) -> None:
        """No event will follow, though there may have been no end."""
        self.is_over = True
        self.notify()

    async def changed(self, timeout_s: float) -> bool:
        """Waits for the next event or the end; ``False`` if the time passed first.
        NOTE: the caller must have looked at the events since it was last scheduled."""
        return await any_changed([self], timeout_s)

    async def over(self, timeout_s: float) -> bool:
        """Waits for the end; ``False`` if the time passed first."""
        end_s = asyncio.get_running_loop().time() + timeout_s
        while not self.is_over:
            left_s = end_s - asyncio.get_running_loop().time()
            if left_s <= 0:
                return False
            await self.changed(left_s)
        return True


async def any_changed(jobs: Collection[FollowedJob], timeout_s: float) -> bool:
    """Like ``FollowedJob.changed``, for the first of several."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[bool] = loop.create_future()
    timer = loop.call_later(timeout_s, _answer, waiting, False)
    for job in jobs:
        job.waiting.add(waiting)
    try:
        return await waiting
    finally:
        timer.cancel()
        for job in jobs:
            job.waiting.discard(waiting)


def _answer(waiting: "asyncio.Future[bool]", value: bool) -> None:
    if not waiting.done():
        waiting.set_result(value)
