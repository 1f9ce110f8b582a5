"""Who runs in the next step, and what came of it. Pure: no model, no Redis, no clock.

Slots are dense: sequences fill 0..n-1, and a hole is filled by moving the last one, since llama.cpp
computes neighbouring slots in one go. Each step decodes one token of every running sequence, then
prefills prompt chunks, oldest sequence first, up to a token budget; neighbours with as much to do share its
call, since each reads all weights. What waits for another
sequence to compute the beginning of its prompt holds a slot and does nothing.
"""

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field

from shared.errors import GenerationTimedOut
from shared.protocol import EndEvent, Event, FinishReason, JobError
from worker.backends.base import MAX_TOGETHER_TOKENS
from worker.chunking import may_take, next_border, next_chunk
from worker.sequence import Drawn, Sequence

#: The rest of a budget is left alone rather than spent on a smaller chunk.
_MIN_ROWS = 8


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
    calls: list[list[Chunk]]  #: chunks of one are alike in size, of neighbouring slots

    @property
    def chunks(self) -> list[Chunk]:
        return [chunk for call in self.calls for chunk in call]

    @property
    def num_draws(self) -> int:
        return len(self.rows) + sum(chunk.draws for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Close:
    slot: int
    sequence: Sequence


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
        self, *, slots: int, context_tokens: int, chunk_tokens: int, grid_tokens: int = 0
    ) -> None:
        """``grid_tokens``: prompts are cut there and nowhere else; 0: chunks of any size will do."""
        self.slots = slots
        self.context_tokens = context_tokens
        self._chunk_tokens = chunk_tokens
        self._grid_tokens = grid_tokens
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
        sequence.plan_prefill()
        self._active.append(sequence)
        self._order.append(sequence)

    @property
    def has_rows(self) -> bool:
        return any(not s.is_prefilling for s in self._active)

    def plan(self, budget_tokens: int, call_tokens: int = 0) -> StepPlan:
        """``budget_tokens`` bounds the prompt tokens of the step; the first chunk is there anyway. Each
        call after the first counts as ``call_tokens`` more."""
        plan = StepPlan([s for s in self._active if not s.is_prefilling], [])
        budget = budget_tokens
        ahead = {s.slot: s for s in self._order if s.is_prefilling and not s.reuse.is_waiting}
        positions = {slot: s.num_computed for slot, s in ahead.items()}
        while ahead:
            lead = next(iter(ahead.values()))
            size = self._next_rows(lead, positions[lead.slot], budget, is_first=not plan.calls)
            if not size:
                break
            together = self._alike(lead, size, ahead, positions, budget)
            call = []
            for sequence in sorted(together, key=lambda s: s.slot):
                position = positions[sequence.slot]
                end = positions[sequence.slot] = position + size
                draws = sequence.draws_first and end == sequence.prefill_end
                call.append(Chunk(sequence, sequence.fed(position, end), position, draws))
                # At a cut its state is wanted as it is there.
                if end == sequence.prefill_end or end in sequence.reuse.cuts:
                    del ahead[sequence.slot]
            plan.calls.append(call)
            budget -= size * len(call) + call_tokens
        return plan

    def _alike(
        self,
        lead: Sequence,
        size: int,
        ahead: dict[int, Sequence],
        positions: dict[int, int],
        budget: int,
    ) -> list[Sequence]:
        """With ``lead`` those in neighbouring slots that can take as many rows in the same call."""
        together = [lead]
        room = min(budget, MAX_TOGETHER_TOKENS) // size
        if size < 2 or self._grid_tokens:
            return together
        first = last = lead.slot
        while len(together) < room:
            for slot in (first - 1, last + 1):
                other = ahead.get(slot)
                if other and may_take(other.next_stop(positions[slot]) - positions[slot], size):
                    break
            else:
                break
            together.append(other)
            first, last = min(first, slot), max(last, slot)
        return together

    def _next_rows(self, sequence: Sequence, position: int, budget: int, *, is_first: bool) -> int:
        """0: the budget does not do for another chunk."""
        stop = sequence.next_stop(position)
        if self._grid_tokens and position < len(sequence.prompt):
            size = min(stop, next_border(position, self._grid_tokens)) - position
            return size if is_first or size <= budget else 0
        if not is_first and budget < min(_MIN_ROWS, stop - position):
            return 0
        return next_chunk(position, stop, max(2, min(self._chunk_tokens, budget)))

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

    def find_preemptible(self) -> Sequence | None:
        """The youngest that has to give way to a job of higher priority."""
        return next((s for s in reversed(self._order) if s.is_preemptible), None)

    @property
    def num_preemptible(self) -> int:
        return sum(s.is_preemptible for s in self._active)

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
        outcome.changes.append(Close(hole, sequence))
        if last is not sequence:
            self._active[hole] = last
            outcome.changes.append(Move(last.slot, hole))
            last.slot = hole
