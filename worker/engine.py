"""Carries out what the scheduler decides on a backend: one thread, one step at a time.

It knows neither Redis nor RQ. Jobs enter and leave between steps.
"""

from collections.abc import Callable
from time import monotonic

from shared.errors import BadRequest, InternalError, PromptTooLong, ServiceError
from shared.protocol import Event, FinishReason, GenerateRequest, JobArgs, Message, StartEvent
from shared.shapes import shape_of
from worker.backends.base import Backend, Constraint, Row
from worker.detokenizer import Detokenizer
from worker.scheduler import Close, Outcome, Scheduler
from worker.sequence import Drawn, JobTimes, Sequence

_INPUTS = ("prompt", "messages", "prompt_token_ids")

Events = list[tuple[Sequence, Event]]


class Engine:
    def __init__(
        self,
        backend: Backend,
        *,
        worker: str,
        chunk_tokens: int,
        budget_tokens: int,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._backend = backend
        self._worker = worker
        self._clock = clock
        self.scheduler = Scheduler(
            slots=backend.facts.slots,
            context_tokens=backend.facts.context_tokens,
            chunk_tokens=chunk_tokens,
            budget_tokens=budget_tokens,
        )
        self.num_generated = 0  #: tokens drawn since the start

    @property
    def num_active(self) -> int:
        return len(self.scheduler.sequences)

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
        deadline_s: float | None = None,
        known: list[int] | None = None,
    ) -> Events:
        """Renders, tokenizes and takes a slot; ``known`` tokens were sent by earlier attempts.
        Raises ``ServiceError`` for a prompt that cannot be run."""
        prompt = self._prepare(args, times.submitted_at_s)
        limit = self._backend.facts.context_tokens
        self._check_length(args, str(len(prompt)), len(prompt))
        sequence = Sequence(
            job_id=job_id,
            attempt=attempt,
            worker=self._worker,
            prompt=tuple(prompt),
            sampling=args.request,
            seed=args.seed,
            max_tokens=args.request.max_tokens,
            times=times,
            detokenizer=Detokenizer(args.request.stops),
            deadline_s=deadline_s,
        )
        known = known or []
        constraint = self._constrain(args.request, known)
        sequence.resume(known)
        start: Events = [(sequence, StartEvent(prompt_tokens=len(prompt)))]
        if sequence.num_tokens >= limit:  # it began on a worker with a longer context
            events = sequence.finish(FinishReason.LENGTH, self._clock())
            return start + [(sequence, event) for event in events]
        self.scheduler.add(sequence)
        history = [*prompt, *known]
        try:
            self._backend.open_slot(sequence.slot, args.request, args.seed, history, constraint)
        except BaseException:
            self._apply(self.scheduler.drop(sequence))
            raise
        return start

    def step(self) -> Events:
        """One token for every running sequence, then prompt chunks; what came of it."""
        overdue = self.scheduler.end_overdue(self._clock())
        self._apply(overdue)
        plan = self.scheduler.plan()
        tokens: list[int] = []
        if plan.rows:
            rows = [Row(s.slot, s.output[-1], s.num_computed) for s in plan.rows]
            tokens += self._backend.decode(rows, [len(s.output) for s in plan.rows])
        for chunk in plan.chunks:
            slot = chunk.sequence.slot
            self._backend.prefill(slot, chunk.tokens, chunk.position)
            if chunk.draws:
                tokens.append(self._backend.sample_prefill(slot, 0))
        self.num_generated += len(tokens)
        slots = [s.slot for s in plan.rows] + [c.sequence.slot for c in plan.chunks if c.draws]
        drawn = [self._drawn(slot, t) for slot, t in zip(slots, tokens, strict=True)]
        outcome = self.scheduler.commit(plan, drawn, self._clock())
        self._apply(outcome)
        return overdue.events + outcome.events

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
                self._backend.close_slot(change.slot)
            else:
                self._backend.move_slot(change.source, change.target)

    def _prepare(self, args: JobArgs, at_s: float) -> list[int]:
        """The tokens of the prompt. What fails here fails this job alone."""
        if args.request.prompt_token_ids is not None:
            return self._given_tokens(args.request.prompt_token_ids)
        try:
            text, is_raw = self._render(args, at_s)
            # Before it is tokenized: that takes seconds for a text that cannot fit anyway.
            at_least = self._backend.count_at_least(text, raw=is_raw)
            self._check_length(args, f"at least {at_least}", at_least)
            prompt = self._backend.tokenize(text, raw=is_raw)
        except ServiceError:
            raise
        except Exception as error:
            raise InternalError(f"The prompt could not be prepared: {error}") from error
        if not prompt:
            raise BadRequest("prompt: has no tokens for this model", field="prompt")
        return prompt

    def _given_tokens(self, tokens: tuple[int, ...]) -> list[int]:
        num_vocab = self._backend.facts.num_vocab
        if num_vocab and max(tokens) >= num_vocab:
            raise BadRequest(
                f"prompt_token_ids: {max(tokens)} is no token of this model, which has {num_vocab}",
                field="prompt_token_ids",
            )
        return list(tokens)

    def _check_length(self, args: JobArgs, words: str, num_tokens: int) -> None:
        limit = self._backend.facts.context_tokens
        if num_tokens >= limit:
            raise PromptTooLong(
                f"The prompt has {words} tokens; the context of the model holds {limit}, "
                "the answer included.",
                field=next(name for name in _INPUTS if getattr(args.request, name) is not None),
            )

    def _render(self, args: JobArgs, at_s: float) -> tuple[str, bool]:
        """The text, and whether it is continued as it is."""
        request = args.request
        if request.messages is not None:
            tools = request.tools or () if request.calls_tools else ()
            return self._backend.render_chat(request.messages, at_s, tools), False
        assert request.prompt is not None, "a request has a prompt, token ids or messages"
        if request.raw or not self._backend.facts.has_chat_template:
            return request.prompt, True
        messages = [Message(role="user", content=request.prompt)]
        return self._backend.render_chat(messages, at_s), False

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
