"""Runs the lines of a batch: some are in the queue at any time, and what is done is written in order."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool

from api.batches.ending import cancel_jobs, find_jobs
from api.batches.flight import Flight, is_passing
from api.batches.lease import Lease
from api.batches.lines import BadLine, parse_line
from api.batches.parts import ERROR, OUTPUT, PartFiles
from api.batches.reader import LineReader, RawLine
from api.batches.record import Batch, BatchStatus
from api.batches.results import read_statuses, read_transcripts, release_jobs
from api.batches.tools import BatchTools
from api.batches.window import LOOKAHEAD
from api.batches.writing import Writing
from shared.errors import BadRequest, InternalError, ServiceError
from shared.logs import about

log = logging.getLogger(__name__)

_LEAST_PAUSE_S, _MOST_PAUSE_S = 0.05, 0.5
_REFUSED_PAUSE_S = 1.0
_CANCEL_EVERY_S = 2.0
#: Written and recorded together.
_LINES_AT_ONCE = 200


class Execution:
    """From where ``batch`` is on record. Redis errors and ``StorageFull`` pass through: then a new one
    goes on from what is on record then."""

    def __init__(
        self,
        tools: BatchTools,
        lease: Lease,
        batch: Batch,
        parts: PartFiles,
        reader: LineReader,
        window: Callable[[], int],
    ) -> None:
        self._tools = tools
        self._lease = lease
        self._batch = batch
        self._parts = parts
        self._reader = reader
        self._window = window
        self._progress = batch.progress
        self._flights: deque[Flight] = deque()
        self._is_read = False
        self._ending = ""
        self._refused_s = 0.0
        self._cancelled_s = 0.0

    async def run(self) -> None:
        """Until every line is on record."""
        pause_s = _LEAST_PAUSE_S
        while True:
            self._lease.check()
            if not self._ending and (ending := self._why_to_end()):
                await self._end_early(ending)
            await self._fill()
            has_news = await self._look()
            has_news = await self._write_done() or has_news
            if self._is_read and not self._flights:
                return
            if not has_news:
                await asyncio.sleep(pause_s)
            pause_s = _LEAST_PAUSE_S if has_news else min(2 * pause_s, _MOST_PAUSE_S)

    def _why_to_end(self) -> str:
        if self._lease.status is BatchStatus.CANCELLING:
            return "cancelled"
        return "expired" if self._lease.now_s >= self._batch.expires_s else ""

    async def _end_early(self, ending: str) -> None:
        """What is in the queue leaves it, also what a holder before put there."""
        self._ending = ending
        await self._read_lines(LOOKAHEAD * self._window() - len(self._flights))
        waiting = [flight for flight in self._flights if flight.is_waiting]
        await find_jobs(self._tools, self._batch, waiting)

    async def _fill(self) -> None:
        """Keeps the window full, as long as the queue takes jobs."""
        window = self._window()
        if self._ending:
            await self._cancel_again()
            await self._read_lines(_LINES_AT_ONCE - len(self._flights))
            for flight in self._flights:
                flight.is_given_up = flight.is_given_up or flight.is_waiting
            return
        loop = asyncio.get_running_loop()
        if loop.time() < self._refused_s + _REFUSED_PAUSE_S:
            return
        num_running = sum(len(flight.running) for flight in self._flights)
        room = min(window - num_running, LOOKAHEAD * window - len(self._flights))
        if room <= 0 and not any(flight.is_waiting for flight in self._flights):
            return
        num_waiting = sum(flight.is_waiting for flight in self._flights)
        await self._read_lines(room - num_waiting)
        try:
            await self._submit(window - num_running, is_alone=not num_running)
        except ServiceError as error:
            if not is_passing(error):
                raise
            log.debug(
                "batch %s waits: %s", self._batch.id, error, extra=about(batch=self._batch.id)
            )
            self._refused_s = loop.time()

    async def _cancel_again(self) -> None:
        """One that ran may be in its queue again, and nobody may be there to take it."""
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._cancelled_s + _CANCEL_EVERY_S:
            self._cancelled_s = now_s
            running = [job_id for flight in self._flights for job_id in flight.running]
            await run_in_threadpool(cancel_jobs, self._tools, running)

    async def _submit(self, room: int, *, is_alone: bool) -> None:
        """A line of more jobs than the window has goes in when nothing else of the batch is there."""
        self._tools.drain.check_admission()
        taken: list[Flight] = []
        for flight in self._flights:
            if not flight.is_waiting:
                continue
            if flight.num_jobs > room and not (is_alone and not taken):
                break
            await flight.prepare(self._tools)
            if flight.is_waiting:
                taken.append(flight)
                room -= flight.num_jobs
        if taken:
            await run_in_threadpool(self._submit_all, taken)

    def _submit_all(self, flights: list[Flight]) -> None:
        for flight in flights:
            if self._lease.is_lost:
                return
            try:
                flight.submit(self._tools, self._batch.id, self._batch.owner, self._lease.fence)
            except BadRequest as error:
                flight.refusal = error

    async def _read_lines(self, num_lines: int) -> None:
        if num_lines <= 0 or self._is_read:
            return
        lines = await run_in_threadpool(self._reader.read, num_lines)
        self._is_read = not lines
        self._flights += [self._flight(line) for line in lines]

    def _flight(self, line: RawLine) -> Flight:
        if not line.raw.strip():
            return Flight(line.number, line.end, None)
        try:
            parsed = parse_line(line.raw, self._batch.request.endpoint)
        except BadLine as error:  # the file was checked: somebody has written into it
            raise InternalError(f"line {line.number} has changed: {error.message}") from None
        return Flight(line.number, line.end, parsed)

    async def _look(self) -> bool:
        """Whether a job has ended."""
        job_ids = [job_id for flight in self._flights for job_id in flight.running]
        if not job_ids:
            return False
        statuses = await read_statuses(self._tools.reads, job_ids)
        has_news = False
        for flight in self._flights:
            if any(statuses[job_id] is None for job_id in flight.running):
                flight.lose()
            over = {i for i in flight.running if (status := statuses[i]) and status.is_final}
            flight.running -= over
            has_news = has_news or bool(over)
        return has_news

    async def _write_done(self) -> bool:
        """Whether there was something to write."""
        done: list[Flight] = []
        for flight in self._flights:
            if not flight.is_done or len(done) == _LINES_AT_ONCE:
                break
            done.append(flight)
        writing = Writing(self._batch.id, self._lease.now_s, self._ending, self._progress)
        written: list[Flight] = []
        results = await read_transcripts(
            self._tools.reads, [i for flight in done for i in _read_of(flight)]
        )
        for flight in done:
            own = [results.pop(0) for _ in _read_of(flight)]
            if any(result.end is None for result in own):
                flight.lose()  # it has expired since it was looked at
                break
            writing.add(flight, own)
            written.append(flight)
        if not written:
            return False
        await self._record(writing)
        for _ in written:
            self._flights.popleft()
        jobs = [job_id for flight in written for job_id in flight.jobs]
        await release_jobs(self._tools.reads, jobs, self._batch.owner)
        return True

    async def _record(self, writing: Writing) -> None:
        """On the disk first, then in Redis: what is not on record is written again."""
        old = self._progress
        for kind, offset, lines in (
            (OUTPUT, old.output_bytes, writing.output),
            (ERROR, old.error_bytes, writing.errors),
        ):
            await run_in_threadpool(self._parts.write, kind, offset, b"".join(lines))
        await self._lease.record(progress=writing.progress.model_dump_json())
        self._progress = writing.progress


def _read_of(flight: Flight) -> list[str]:
    """The jobs of which its line is made."""
    is_answer = flight.line is not None and flight.refusal is None and not flight.is_given_up
    return flight.jobs if is_answer else []
