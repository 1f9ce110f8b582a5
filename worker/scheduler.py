"""Who runs in the next step, and what came of it. Pure: no model, no Redis, no clock.

Slots are dense: sequences fill 0..n-1, and a hole is filled by moving the last one, since llama.cpp
computes neighbouring slots in one go. Each step decodes one token of every running sequence, then
prefills prompt chunks, oldest sequence first, up to a token budget.
"""

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field

from shared.errors import GenerationTimedOut
from shared.protocol import EndEvent, Event, FinishReason, JobError
from worker.sequence import Drawn, Sequence


@dataclass(frozen=True, slots=True)
class Chunk:
    """Prompt tokens of one sequence at ``position``; ``draws``: the next token comes of it."""

    sequence: Sequence
    tokens: tuple[int, ...]
    position: int
    draws: bool


@dataclass(frozen=True, slots=True)
class StepPlan:
    """``rows``: sequences to decode, by slot; each feeds its last token."""

    rows: list[Sequence]
    chunks: list[Chunk]

    @property
    def num_draws(self) -> int:
        return len(self.rows) + sum(chunk.draws for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Close:
    slot: int


@dataclass(frozen=True, slots=True)
class Move:
    source: int
    target: int


@dataclass(slots=True)
class Outcome:
    """``changes`` of the slots are to be carried out in order."""

    events: list[tuple[Sequence, Event]] = field(default_factory=list)
    changes: list[Close | Move] = field(default_factory=list)


class Scheduler:
    def __init__(
        self, *, slots: int, context_tokens: int, chunk_tokens: int, budget_tokens: int
    ) -> None:
        self.slots = slots
        self.context_tokens = context_tokens
        self._chunk_tokens = chunk_tokens
        self._budget_tokens = budget_tokens
        self._active: list[Sequence] = []  #: index is the slot
        self._order: list[Sequence] = []  #: by arrival

    @property
    def sequences(self) -> Seq[Sequence]:
        return self._active

    @property
    def num_free_slots(self) -> int:
        return self.slots - len(self._active)

    def find(self, job_id: str) -> Sequence | None:
        return next((s for s in self._active if s.job_id == job_id), None)

    def add(self, sequence: Sequence) -> None:
        assert self.num_free_slots > 0, "a sequence was admitted without a free slot"
        sequence.slot = len(self._active)
        sequence.plan_prefill(self._chunk_tokens)
        self._active.append(sequence)
        self._order.append(sequence)

    def plan(self) -> StepPlan:
        rows = [s for s in self._active if not s.is_prefilling]
        chunks: list[Chunk] = []
        budget = self._budget_tokens
        for sequence in self._order:
            position, sizes = sequence.num_computed, sequence.chunks
            if not sizes:
                continue
            fed = (*sequence.prompt, *sequence.output)
            for i, size in enumerate(sizes):
                if size > budget and chunks:
                    return StepPlan(rows, chunks)
                is_last = i == len(sizes) - 1
                tokens = fed[position : position + size]
                chunks.append(Chunk(sequence, tokens, position, is_last and not sequence.output))
                position += size
                budget -= size
        return StepPlan(rows, chunks)

    def commit(self, plan: StepPlan, drawn: Seq[Drawn], now_s: float) -> Outcome:
        """``drawn`` is in the order of the plan: its rows, then the chunks that draw."""
        assert len(drawn) == plan.num_draws, "one token for each row and each chunk that draws"
        tokens = iter(drawn)
        outcome = Outcome()
        for sequence in plan.rows:
            sequence.num_computed += 1
            self._accept(sequence, next(tokens), now_s, outcome)
        for chunk in plan.chunks:
            chunk.sequence.num_computed += len(chunk.tokens)
            chunk.sequence.chunks.pop(0)
            if chunk.draws:
                self._accept(chunk.sequence, next(tokens), now_s, outcome)
        return outcome

    def end_overdue(self, now_s: float) -> Outcome:
        """Ends what was cancelled and what has passed its deadline."""
        outcome = Outcome()
        for sequence in list(self._active):
            if sequence.is_cancelled:
                self._end(sequence, sequence.finish(FinishReason.CANCELLED, now_s), outcome)
            elif sequence.deadline_s is not None and now_s >= sequence.deadline_s:
                late = GenerationTimedOut()
                error = JobError(code=late.code, message=late.message)
                self._end(sequence, sequence.finish(FinishReason.TIMEOUT, now_s, error), outcome)
        return outcome

    def drop(self, sequence: Sequence) -> Outcome:
        """Takes it out without a word: it ended elsewhere, or is parked."""
        outcome = Outcome()
        self._leave(sequence, outcome)
        return outcome

    def check_integrity(self) -> None:
        assert [s.slot for s in self._active] == list(range(len(self._active))), "slots have holes"
        assert {id(s) for s in self._active} == {id(s) for s in self._order}, "a sequence is lost"

    def _accept(self, sequence: Sequence, drawn: Drawn, now_s: float, outcome: Outcome) -> None:
        events = sequence.accept(drawn, now_s, self.context_tokens)
        if events and isinstance(events[-1], EndEvent):
            self._end(sequence, events, outcome)
        else:
            outcome.events += [(sequence, event) for event in events]

    def _end(self, sequence: Sequence, events: Seq[Event], outcome: Outcome) -> None:
        outcome.events += [(sequence, event) for event in events]
        self._leave(sequence, outcome)

    def _leave(self, sequence: Sequence, outcome: Outcome) -> None:
        hole, last = sequence.slot, self._active.pop()
        self._order.remove(sequence)
        outcome.changes.append(Close(hole))
        if last is not sequence:
            self._active[hole] = last
            outcome.changes.append(Move(last.slot, hole))
            last.slot = hole
