"""Carries out what the scheduler decides on a backend: one thread, one step at a time.

It knows neither Redis nor RQ. Jobs enter and leave between steps.
"""

from collections.abc import Callable
from time import monotonic

from shared.errors import BadRequest
from shared.protocol import (
    Event,
    FinishReason,
    GenerateRequest,
    JobArgs,
    Priority,
    StartEvent,
    Weights,
)
from shared.shapes import shape_of
from worker.backends.base import Backend, Constraint, Row, SlotChunk
from worker.cache_figures import CacheFigures
from worker.detokenizer import Detokenizer
from worker.pace import Pace
from worker.prefix_cache import PrefixCache
from worker.prompts import Prompts
from worker.scheduler import Chunk, Close, Outcome, Scheduler
from worker.sequence import Drawn, JobTimes, Sequence
from worker.step_figures import StepFigures

#: A job of low priority that was begun so often is left to end.
_MAX_PREEMPTED = 3

Events = list[tuple[Sequence, Event]]


class Engine:
    def __init__(
        self,
        backend: Backend,
        *,
        worker: str,
        weights: Weights | None = None,
        chunk_tokens: int,
        grid_tokens: int = 0,
        pace: Pace,
        cache: PrefixCache | None = None,
        figures: CacheFigures | None = None,
        step_figures: StepFigures | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """``cache``: none to compute every prompt."""
        self._backend = backend
        self._prompts = Prompts(backend)
        self._worker = worker
        self._weights = weights
        self._clock = clock
        self.scheduler = Scheduler(
            slots=backend.facts.slots,
            context_tokens=backend.facts.context_tokens,
            chunk_tokens=chunk_tokens,
            grid_tokens=grid_tokens,
        )
        self._pace = pace
        self._cache = cache
        self.figures = figures or CacheFigures()
        self._step_figures = step_figures or StepFigures()
        self.num_generated = 0  #: tokens drawn since the start

    @property
    def num_active(self) -> int:
        return len(self.scheduler.sequences)

    @property
    def num_kv_tokens(self) -> int:
        """Cells of the KV cache that hold something. The heart's thread asks."""
        return sum(s.num_computed for s in tuple(self.scheduler.sequences))

    @property
    def num_free_slots(self) -> int:
        return self.scheduler.num_free_slots

    def admit(
        self,
        job_id: str,
        attempt: int,
        args: JobArgs,
        times: JobTimes,
        *,
        owner: str = "",
        deadline_s: float | None = None,
        known: list[int] | None = None,
    ) -> Events:
        """Renders, tokenizes and takes a slot; ``known`` tokens were sent by earlier attempts, ``owner``
        is whose job it is. Raises ``ServiceError`` for a prompt that cannot be run."""
        if args.warm and not (self._cache and self._cache.keeps_snapshots):
            raise BadRequest(
                "the worker that took this job keeps no snapshots: MINI_VLLM_PREFIX_CACHE is off there, "
                "or its log says why"
            )
        prompt = self._prompts.prepare(args, times.submitted_at_s)
        sequence = Sequence(
            job_id=job_id,
            attempt=attempt,
            worker=self._worker,
            weights=self._weights,
            prompt=tuple(prompt),
            sampling=args.request,
            seed=args.seed,
            max_tokens=args.request.max_tokens,
            times=times,
            detokenizer=Detokenizer(args.request.stops),
            deadline_s=deadline_s,
            is_preemptible=args.request.priority is Priority.LOW and attempt <= _MAX_PREEMPTED,
        )
        known = known or []
        constraint = self._constrain(args.request, known)
        sequence.resume(known)
        start: Events = [(sequence, StartEvent(prompt_tokens=len(prompt)))]
        if sequence.num_tokens >= self._backend.facts.context_tokens:
            # It began on a worker with a longer context.
            events = sequence.finish(FinishReason.LENGTH, self._clock())
            return start + [(sequence, event) for event in events]
        self.scheduler.add(sequence)
        history = [*prompt, *known]
        try:
            self._backend.open_slot(sequence.slot, args.request, args.seed, history, constraint)
            if self._cache:
                sequence.reuse = self._cache.reuse_for(job_id, owner, args)
                is_warm = args.warm is not None
                self._cache.begin(sequence, self.scheduler.sequences, is_warm=is_warm)
        except BaseException:
            self._apply(self.scheduler.drop(sequence))
            raise
        return start

    def step(self) -> Events:
        """One token for every running sequence, then prompt chunks; what came of it."""
        begun_s = self._clock()
        overdue = self.scheduler.end_overdue(begun_s)
        self._apply(overdue)
        if self._cache:
            self._cache.resolve(self.scheduler.sequences)
        budget = self._pace.budget_tokens(holds_up=self.scheduler.has_rows)
        plan = self.scheduler.plan(budget, self._pace.call_tokens)
        tokens: list[int] = []
        if plan.rows:
            rows = [Row(s.slot, s.output[-1], s.num_computed) for s in plan.rows]
            tokens += self._backend.decode(rows, [len(s.output) for s in plan.rows])
        tokens += self._prefill(plan.calls)
        self.num_generated += len(tokens)
        slots = [s.slot for s in plan.rows] + [c.sequence.slot for c in plan.chunks if c.draws]
        drawn = [self._drawn(slot, t) for slot, t in zip(slots, tokens, strict=True)]
        now_s = self._clock()
        outcome = self.scheduler.commit(plan, drawn, now_s)
        num_calls = bool(plan.rows) + len(plan.calls)
        if num_calls:
            gaps_s = [s.gap_s for s in plan.rows if s.gap_s is not None]
            self._step_figures.step_done(now_s - begun_s, gaps_s, num_calls)
        self._apply(outcome)
        if self._cache:
            self._cache.after_step(self.scheduler.sequences)
        return overdue.events + outcome.events

    @property
    def is_waiting(self) -> bool:
        """Whether a step would do nothing: all wait for what another worker computes."""
        return self.num_active > 0 and all(s.reuse.is_waiting for s in self.scheduler.sequences)

    def _prefill(self, calls: list[list[Chunk]]) -> list[int]:
        tokens = []
        for call in calls:
            begun_s = self._clock()
            self._backend.prefill(
                [SlotChunk(c.sequence.slot, c.tokens, c.position, c.draws) for c in call]
            )
            tokens += [self._backend.sample_prefill(c.sequence.slot, 0) for c in call if c.draws]
            self._pace.note(sum(len(c.tokens) for c in call), self._clock() - begun_s)
        self.figures.prefill_tokens_per_s = self._pace.tokens_per_s
        return tokens

    def park(self, sequence: Sequence) -> None:
        """Takes it out; where there is a cache, its state is kept for whoever goes on with it."""
        if self._cache:
            self._cache.park(sequence)
        self._apply(self.scheduler.drop(sequence))

    def cancel(self, job_id: str) -> None:
        """Takes effect at the next step."""
        sequence = self.scheduler.find(job_id)
        if sequence:
            sequence.is_cancelled = True

    def drop(self, job_id: str) -> None:
        sequence = self.scheduler.find(job_id)
        if sequence:
            self._apply(self.scheduler.drop(sequence))

    def _apply(self, outcome: Outcome) -> None:
        for change in outcome.changes:
            if isinstance(change, Close):
                if self._cache:
                    self._cache.leave(change.sequence)
                self._backend.close_slot(change.slot)
            else:
                self._backend.move_slot(change.source, change.target)

    def _constrain(self, request: GenerateRequest, known: list[int]) -> Constraint:
        shape = shape_of(request, self._backend.facts.tool_format)
        return None if shape is None else self._backend.constrain(shape, known)

    def _drawn(self, slot: int, token: int) -> Drawn:
        remark = self._backend.remark(slot)
        if remark is None:
            return Drawn(token, self._backend.piece(token), self._backend.is_end(token))
        if remark.error:
            return Drawn(token, b"", False, error=remark.error)
        return Drawn(
            token,
            self._backend.piece(token),
            self._backend.is_end(token),
            logprob=remark.logprob,
            is_last=remark.is_last,
        )
