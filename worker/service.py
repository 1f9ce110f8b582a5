"""The worker's loop: engine steps, one exchange with Redis for each, jobs in and out.

SIGTERM drains: no new jobs, running ones finish within the drain timeout, the rest go back to the
front of their queues, from where another worker continues them.
"""

import logging
from collections import deque
from time import monotonic, sleep

from redis.exceptions import RedisError

from shared.errors import InternalError, ServiceError
from shared.logs import about, concerning, note
from shared.protocol import (
    EndEvent,
    FinishReason,
    JobError,
    JobStatus,
    Timings,
    Usage,
    Weights,
)
from shared.stream import Entry
from worker.engine import Engine, Events
from worker.heart import Pulse
from worker.intake import Intake
from worker.link import Link, Popped, is_passing
from worker.sequence import JobTimes, Sequence

log = logging.getLogger(__name__)

_BELL_WAIT_S = 1.0
_RETRY_PAUSE_S = 0.2
#: While all sequences wait for what another worker computes.
_WAIT_S = 0.01


class Drain:
    """Asked for by a signal or a command; a second request ends the waiting."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._until_s: float | None = None

    def request(self) -> None:
        self._until_s = monotonic() + (self._timeout_s if self._until_s is None else 0)

    @property
    def is_requested(self) -> bool:
        return self._until_s is not None

    @property
    def is_over(self) -> bool:
        return self._until_s is not None and monotonic() >= self._until_s


class Service:
    def __init__(
        self,
        engine: Engine,
        link: Link,
        intake: Intake,
        pulse: Pulse,
        drain: Drain,
        worker: str,
        weights: Weights | None = None,
    ) -> None:
        self._engine = engine
        self._link = link
        self._intake = intake
        self._pulse = pulse
        self._drain = drain
        self._worker = worker
        self._weights = weights
        self._arrivals: deque[Popped] = deque()
        self._pending: list[Entry] = []  #: events that no step made: starts, and refusals
        self._request_ids: dict[str, str | None] = {}  #: of the jobs that were read here

    def run(self) -> None:
        """Until drained. Raises ``Buried`` or ``GivenUp``; what this worker held is then recovered."""
        while not self._drain.is_over:
            self._pulse.touch()
            events = self._engine.step() if self._engine.num_active else []
            if self._engine.is_waiting:
                sleep(_WAIT_S)
            if events:
                self._pulse.step_done()
            self._exchange(events)
            self._admit_arrivals()
            self._intake.settle_rest()
            if self._is_idle:
                if self._drain.is_requested:
                    return
                self._engine.scheduler.check_integrity()
                self._link.wait_for_bell(_BELL_WAIT_S)
        self._park_all()

    @property
    def _is_idle(self) -> bool:
        return not (self._engine.num_active or self._arrivals or self._pending)

    @property
    def _held_ids(self) -> list[str]:
        active = [s.job_id for s in self._engine.scheduler.sequences]
        return active + [popped.job_id for popped in self._arrivals]

    def _wants(self) -> tuple[int, int]:
        """How many jobs there is room for, and how many running ones would make room for others."""
        if self._drain.is_requested:
            return 0, 0
        room = self._engine.num_free_slots - len(self._arrivals)
        preemptible = self._engine.scheduler.num_preemptible
        return max(0, room), max(0, min(preemptible, preemptible + room))

    def _exchange(self, events: Events) -> None:
        now_s = monotonic()
        entries = list(self._pending)
        entries += [Entry(s.job_id, s.attempt, e, s.busy_ms(now_s)) for s, e in events]
        told = {entry.job_id for entry in entries}
        entries += [
            Entry(s.job_id, s.attempt, None)
            for s in self._engine.scheduler.sequences
            if s.job_id not in told
        ]
        want, give_way = self._wants()
        stops, popped = self._link.exchange(entries, self._held_ids, want, give_way)
        self._pending = []
        self._arrivals += popped
        for entry in entries:
            self._pulse.touch()  # each word to RQ may wait for Redis
            verdict = stops.get(entry.job_id)
            if isinstance(entry.event, EndEvent) and verdict != "fenced":
                self._log_end(entry.job_id, entry.event)
                self._intake.settle(entry.job_id, entry.event.status, entry.event.finish_reason)
                self._request_ids.pop(entry.job_id, None)
        for job_id, verdict in stops.items():
            self._pulse.touch()
            if verdict == "cancelled":
                self._engine.cancel(job_id)
            else:
                # No more to do where it was our own end, sent twice; else it goes on elsewhere.
                log.debug("job %s: is no longer ours", job_id, extra=self._about(job_id))
                self._engine.drop(job_id)
                self._intake.release(job_id)
                self._request_ids.pop(job_id, None)

    def _admit_arrivals(self) -> None:
        """One a round beside running sequences, which a long prompt's tokenizing would hold up."""
        had_active = self._engine.num_active > 0
        while self._arrivals:
            popped = self._arrivals[0]
            job_id = popped.job_id
            try:
                with concerning(job=job_id):
                    self._admit(popped)
            except RedisError as error:
                if not is_passing(error):
                    raise
                words = "job %s: admitted later: %s"
                log.warning(words, job_id, error, extra=self._about(job_id))
                if not had_active:
                    sleep(_RETRY_PAUSE_S)
                return
            except ServiceError as error:
                self._refuse(popped, error)
            except Exception:  # what stands in Redis may be anything, and harms its own job alone
                log.exception("job %s cannot be admitted", job_id, extra=self._about(job_id))
                self._refuse(popped, InternalError("This job cannot be read; the logs say more."))
            self._arrivals.popleft()
            if had_active:
                return

    def _admit(self, popped: Popped) -> None:
        args = self._intake.take(popped.job_id)
        self._request_ids[popped.job_id] = args.request_id
        note(request_id=args.request_id)
        if not self._engine.num_free_slots:
            self._preempt()
        known = self._link.read_transcript(popped.job_id).token_ids if popped.count else []
        deadline_s = None
        if popped.deadline_ms is not None:
            deadline_s = monotonic() + (popped.deadline_ms - popped.now_ms) / 1000
        events = self._engine.admit(
            popped.job_id,
            popped.attempt,
            args,
            _times(popped),
            owner=popped.owner,
            deadline_s=deadline_s,
            known=known,
        )
        log.info(
            "job %s: attempt %d%s%s%s",
            popped.job_id,
            popped.attempt,
            f", alone, since {popped.num_deaths} workers died of it" if popped.num_deaths else "",
            f", goes on after {len(known)} tokens" if known else "",
            f", user {args.request.user!r}" if args.request.user else "",
            extra=about(
                attempt=popped.attempt,
                known_tokens=len(known),
                num_deaths=popped.num_deaths,
                user=args.request.user,
            ),
        )
        self._pending += [Entry(s.job_id, s.attempt, event) for s, event in events]

    def _refuse(self, popped: Popped, error: ServiceError) -> None:
        times = _times(popped)
        event = EndEvent(
            status=JobStatus.FAILED,
            finish_reason=FinishReason.ERROR,
            usage=Usage(completion_tokens=popped.count),
            timings=Timings(
                queued_s=times.queued_s,
                total_s=round(times.before_attempt_s + monotonic() - times.began_s, 4),
            ),
            error=JobError(code=error.code, message=error.message, field=error.field),
            seed=popped.seed,
            worker=self._worker,
            attempts=popped.attempt,
            weights=self._weights,
        )
        self._pending.append(Entry(popped.job_id, popped.attempt, event))

    def _preempt(self) -> None:
        """A job of low priority makes room for one that was taken in its place."""
        sequence = self._engine.scheduler.find_preemptible()
        assert sequence is not None, "a job was taken for which nothing gives way"
        self._park(sequence)
        self._engine.figures.preemptions += 1

    def _park(self, sequence: Sequence) -> None:
        self._pulse.touch()
        self._engine.park(sequence)  # before another worker may look for its state
        self._link.park(sequence.job_id, sequence.attempt)
        self._intake.release(sequence.job_id)
        self._log_parked(sequence.job_id, sequence.attempt, sequence.num_released)

    def _park_all(self) -> None:
        for sequence in list(self._engine.scheduler.sequences):
            self._park(sequence)
        for popped in self._arrivals:
            self._link.park(popped.job_id, popped.attempt)
            self._log_parked(popped.job_id, popped.attempt, popped.count)

    def _about(self, job_id: str, **fields: object) -> dict[str, object]:
        return about(job=job_id, request_id=self._request_ids.get(job_id), **fields)

    def _log_parked(self, job_id: str, attempt: int, num_tokens: int) -> None:
        told = self._about(job_id, attempt=attempt, tokens=num_tokens)
        log.info("job %s: parked after %d tokens", job_id, num_tokens, extra=told)
        self._request_ids.pop(job_id, None)

    def _log_end(self, job_id: str, event: EndEvent) -> None:
        """Of an error only its code: its message may quote the request."""
        code = event.error.code if event.error else None
        words = "job %s: %s (%s%s), %d tokens"
        status, reason, usage = event.status, event.finish_reason, event.usage
        told = self._about(
            job_id,
            attempt=event.attempts,
            status=status.value,
            finish_reason=reason.value,
            error=code,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            tokens=usage.completion_tokens,
            **event.timings.model_dump(exclude_none=True),
        )
        because = f": {code}" if code else ""
        log.info(words, job_id, status, reason, because, usage.completion_tokens, extra=told)


def _times(popped: Popped) -> JobTimes:
    first_ms = popped.first_token_ms
    return JobTimes(
        queued_s=(popped.started_ms - popped.created_ms) / 1000,
        before_attempt_s=(popped.now_ms - popped.created_ms) / 1000,
        began_s=monotonic(),
        ttft_s=None if first_ms is None else (first_ms - popped.created_ms) / 1000,
        submitted_at_s=popped.created_ms / 1000,
    )
