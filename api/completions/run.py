"""The response to a call that is waited for: its jobs are followed to their ends, and told at once or
while they write. A client that leaves ends them, unless it said that it comes again.

Headers of a stream wait until a job has begun, for a while: what cannot begin has a status of its own.
"""

import asyncio
import json
import logging
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from api.completions.answer import head, usage_of
from api.completions.call import Call
from api.completions.chunks import ChoiceChunks, Chunk
from api.completions.ends import error_of
from api.completions.submission import cancel_jobs
from api.deps import Gateway
from api.errors import status_of
from api.followed_job import FollowedJob, any_changed
from api.openai_errors import openai_body, openai_status
from api.sse import KEEP_ALIVE, cancel_when_gone
from shared.connection import RedisError
from shared.errors import ServiceError, ShuttingDown, Unavailable
from shared.logs import about
from shared.protocol import EndEvent
from shared.stream import Transcript

log = logging.getLogger(__name__)

#: So long at a time: the hub tells of every change.
_WAIT_S = 3600.0
_DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Run:
    """A call whose jobs were taken. ``is_kept``: they are not for this connection alone."""

    call: Call
    call_id: str
    created_s: int
    job_ids: tuple[str, ...]
    is_kept: bool


class RunResponse(Response):
    def __init__(self, gateway: Gateway, run: Run) -> None:
        self.status_code = 200
        self.background = None
        self._gateway = gateway
        self._run = run
        self._error: ServiceError | None = None
        self._is_told = False
        if run.call.stream:
            self.media_type = "text/event-stream"
        self.init_headers(
            {
                "Cache-Control": "no-cache",
                "X-Accel-Buffering": "no",
                "X-Job-Id": run.job_ids[0],
            }
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as stack:
            hub = self._gateway.hub
            jobs = [await stack.enter_async_context(hub.follow(i)) for i in self._run.job_ids]
            async with anyio.create_task_group() as group:
                group.start_soon(cancel_when_gone, receive, group.cancel_scope)
                try:
                    with suppress(OSError):  # the client is gone
                        await self._tell(jobs, scope, receive, send)
                        self._is_told = True
                except ServiceError as error:  # out of the group it would be a group itself
                    self._error = error
                group.cancel_scope.cancel()
            if not self._is_told:
                await self._end_jobs([job.job_id for job in jobs if not job.has_ended])
        if self._error is not None:
            raise self._error

    async def _tell(
        self, jobs: list[FollowedJob], scope: Scope, receive: Receive, send: Send
    ) -> None:
        if self._run.call.stream:
            await self._until_begun(jobs)
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await send(start)
            await self._stream(jobs, send)
            return
        while waiting := [job for job in jobs if self._is_open(job)]:
            await any_changed(waiting, _WAIT_S)
        results = [_transcript(job) for job in jobs]
        run = self._run
        response = JSONResponse(run.call.answer(run.call_id, run.created_s, results))
        response.headers["X-Job-Id"] = run.job_ids[0]
        await response(scope, receive, send)

    async def _until_begun(self, jobs: list[FollowedJob]) -> None:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._gateway.settings.header_wait_s
        while not self._has_begun(jobs):
            if not await any_changed(jobs, max(0, until_s - loop.time())):
                return

    def _has_begun(self, jobs: list[FollowedJob]) -> bool:
        waiting = [job for job in jobs if self._is_open(job)]  # of all: one may have failed
        return len(waiting) < len(jobs) or any(job.events for job in waiting)

    def _is_open(self, job: FollowedJob) -> bool:
        """Raises the ``ServiceError`` of one that ended without an answer."""
        if not job.is_over:
            return True
        if not job.has_ended:
            if self._gateway.drain.is_requested:
                raise ShuttingDown
            raise Unavailable(f"Job {job.job_id} was lost; send the request again.")
        end = job.events[-1]
        assert isinstance(end, EndEvent), "the end is the last event"
        if error := error_of(end, f"job {job.job_id}"):
            raise error
        return False

    async def _stream(self, jobs: list[FollowedJob], send: Send) -> None:
        try:
            await self._send_chunks(jobs, send)
        except ServiceError as error:
            log.info(
                "call %s: %s", self._run.call_id, error.code, extra=about(call=self._run.call_id)
            )
            body = openai_body(error, openai_status(error, status_of(error)))
            await _send(send, _data(body) + _DONE)
            await self._end_jobs([job.job_id for job in jobs if not job.has_ended])
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_chunks(self, jobs: list[FollowedJob], send: Send) -> None:
        run, call = self._run, self._run.call
        choices = [
            ChoiceChunks(call.form, run.call_id, run.created_s, i, job.job_id)
            for i, job in enumerate(jobs)
        ]
        told = [0] * len(jobs)
        rest: Chunk = {"usage": None} if call.include_usage else {}
        while True:
            body, error = b"", None
            try:
                for i, job in enumerate(jobs):
                    while told[i] < len(job.events):
                        told[i] += 1
                        chunks = choices[i].feed(job.events[told[i] - 1])
                        body += b"".join(_data(chunk | rest) for chunk in chunks)
            except ServiceError as raised:  # what came before it is told
                error = raised
            if body:
                await _send(send, body)
            if error is not None:
                raise error
            if body:
                continue
            waiting = [job for job in jobs if self._is_open(job)]
            if not waiting:
                break
            if not await any_changed(waiting, self._gateway.settings.sse_keepalive_s):
                await _send(send, KEEP_ALIVE)
        last = b""
        if call.include_usage:
            usage = usage_of([choice.usage for choice in choices], call.num_choices)
            whole = head(call.form, run.call_id, run.created_s, is_chunk=True)
            last = _data({**whole, "choices": [], "usage": usage})
        await _send(send, last + _DONE)

    async def _end_jobs(self, job_ids: list[str]) -> None:
        if self._run.is_kept or not job_ids:
            return
        with anyio.CancelScope(shield=True):
            try:
                await run_in_threadpool(cancel_jobs, self._gateway.broker, job_ids)
            except RedisError as error:
                words = "jobs %s of a client that left go on: %r"
                log.warning(words, job_ids, error, extra=about(jobs=job_ids))


def _transcript(job: FollowedJob) -> Transcript:
    transcript = Transcript()
    for event in job.events:
        transcript.add(event)
    return transcript


def _data(payload: Chunk) -> bytes:
    return f"data: {json.dumps(payload, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
