"""A model without weights: each byte is a token, and the next token is a pure function.

It is as strict as llama.cpp and says what is wrong: a position that is not the next one, a token
that was not drawn, a slot with a hole before it. ``calls`` lists what was asked of it.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from shared.errors import BadRequest, NoChatTemplate
from shared.protocol import Message, Sampling, Tool
from worker.backends.arrangement import check_alike
from worker.backends.base import Constraint, ModelFacts, Remark, Row, SlotChunk

END = 256
STATE_MAGIC = b"scripted"
MAX_CHUNK_TOKENS = 56
BYTES_PER_TOKEN = 1024  #: of KV, as far as ``facts`` go


@dataclass(frozen=True, slots=True)
class Call:
    """``name`` of the method; the rows it ran: slot, number of tokens, first position. A move has
    the source and the target as two rows."""

    name: str
    rows: tuple[tuple[int, int, int], ...]

    @property
    def slots(self) -> tuple[int, ...]:
        return tuple(slot for slot, _, _ in self.rows)


@dataclass(slots=True)
class _Slot:
    sampling: Sampling
    seed: int
    history: list[int]
    tokens: list[int] = field(default_factory=list)
    drawn: int | None = None
    next_index: int | None = None
    has_output: bool = False


class ScriptedBackend:
    """``answers`` maps the beginning of a prompt to what the model answers to it; other prompts get
    letters without end, or with an end once in ``ends_one_in`` tokens. Steps count from 1."""

    def __init__(
        self,
        *,
        slots: int = 4,
        context_tokens: int = 512,
        answers: Mapping[str, str | bytes] | None = None,
        ends_one_in: int = 0,
        has_chat_template: bool = True,
        is_batch_invariant: bool = True,
        fail_at_step: int | None = None,
        window_tokens: int = 0,
        max_chunk_tokens: int = MAX_CHUNK_TOKENS,
    ) -> None:
        self._max_chunk_tokens = max_chunk_tokens
        self.facts = ModelFacts(
            description="scripted",
            context_tokens=context_tokens,
            slots=slots,
            kv_cache_bytes=slots * context_tokens * BYTES_PER_TOKEN,
            has_chat_template=has_chat_template,
            llama_cpp="none",
            can_restore=True,
            window_tokens=window_tokens,
            state_key={"model": "scripted", "slots": slots},
        )
        self.fail_at_step = fail_at_step
        self.calls: list[Call] = []
        self.num_steps = 0
        self.is_closed = False
        self._answers = {
            prompt.encode(): answer.encode() if isinstance(answer, str) else answer
            for prompt, answer in (answers or {}).items()
        }
        self._ends_one_in = ends_one_in
        self._is_batch_invariant = is_batch_invariant
        self._slots: dict[int, _Slot] = {}

    @property
    def open_slots(self) -> tuple[int, ...]:
        return tuple(sorted(self._slots))

    def tokens_in(self, slot: int) -> list[int]:
        return list(self._open(slot).tokens)

    def tokenize(
        self,
        text: str,
        *,
        raw: bool,  # noqa: ARG002
        add_special: bool = True,  # noqa: ARG002
    ) -> list[int]:
        return list(text.encode())

    def count_at_least(self, text: str, *, raw: bool) -> int:  # noqa: ARG002
        return len(text) // 4

    def render_chat(
        self,
        messages: Sequence[Message],
        at_s: float,  # noqa: ARG002
        tools: Sequence[Tool] = (),
    ) -> str:
        if not self.facts.has_chat_template:
            raise NoChatTemplate()
        assert not tools, "the scripted model knows no tools"
        turns = [f"<{message.role}>{message.content}\n" for message in messages]
        return "".join(turns) + "<assistant>"

    def piece(self, token: int) -> bytes:
        return b"" if token == END else bytes([token])

    def text_bytes(self, token: int) -> bytes:
        return b"<end>" if token == END else bytes([token])

    def is_end(self, token: int) -> bool:
        return token == END

    def constrain(self, shape: str, known: Sequence[int]) -> Constraint:  # noqa: ARG002
        raise BadRequest("this model cannot hold an answer to a shape")

    def remark(self, slot: int) -> Remark | None:  # noqa: ARG002
        return None

    def open_slot(
        self,
        slot: int,
        sampling: Sampling,
        seed: int,
        history: Sequence[int],
        constraint: Constraint = None,
    ) -> None:
        self._record("open_slot", (slot, len(history), 0))
        assert 0 <= slot < self.facts.slots, f"there is no slot {slot}"
        assert constraint is None, "the scripted model made no constraint"
        assert history, "a sequence needs at least one token of history"
        self._slots[slot] = _Slot(sampling, seed, list(history))

    def prefill(self, chunks: Sequence[SlotChunk]) -> None:
        self._record("prefill", *((c.slot, len(c.tokens), c.position) for c in chunks))
        self._step()
        check_alike(chunks, self._max_chunk_tokens)
        for chunk in chunks:
            state = self._open(chunk.slot)
            assert state.drawn is None, f"slot {chunk.slot} was prefilled after a draw"
            self._feed(chunk.slot, chunk.tokens, chunk.position)
            expected = state.history[chunk.position : chunk.position + len(chunk.tokens)]
            assert list(chunk.tokens) == expected, (
                f"slot {chunk.slot} is fed other tokens than its history"
            )
            state.has_output = chunk.has_output

    def sample_prefill(self, slot: int, index: int) -> int:
        before = (call for call in reversed(self.calls) if call.name != "sample_prefill")
        last = next(before, None)
        assert last is not None and last.name == "prefill" and slot in last.slots, (
            f"slot {slot} is not what was prefilled in the last call"
        )
        assert self._open(slot).has_output, f"the last call gave no output for slot {slot}"
        self._open(slot).has_output = False
        self._record("sample_prefill", (slot, 1, index))
        state = self._open(slot)
        assert state.tokens == state.history, f"the prompt of slot {slot} is not whole yet"
        return self._draw(slot, index)

    def decode(self, rows: Sequence[Row], indices: Sequence[int]) -> list[int]:
        self._record("decode", *((row.slot, 1, row.position) for row in rows))
        self._step()
        slots = [row.slot for row in rows]
        assert rows, "a step of no rows"
        assert len(indices) == len(rows), f"{len(rows)} rows, {len(indices)} indices"
        assert slots == sorted(set(slots)), f"slots are not sorted and unique: {slots}"
        assert self.open_slots == tuple(range(len(self._slots))), (
            f"slots are not dense: {self.open_slots} are open"
        )
        for row in rows:
            state = self._open(row.slot)
            expected = state.drawn
            if expected is None:  # resumed: the last token of its history is the first input
                assert len(state.tokens) == len(state.history) - 1, (
                    f"slot {row.slot} is decoded before its first draw"
                )
                expected = state.history[-1]
            assert row.token == expected, (
                f"slot {row.slot} is fed {row.token}, {expected} was drawn"
            )
            self._feed(row.slot, [row.token], row.position)
        return [self._draw(row.slot, index) for row, index in zip(rows, indices, strict=True)]

    def close_slot(self, slot: int) -> None:
        self._record("close_slot", (slot, 0, 0))
        self._slots.pop(slot, None)

    def move_slot(self, source: int, target: int) -> None:
        self._record("move_slot", (source, 0, 0), (target, 0, 0))
        assert 0 <= target < self.facts.slots, f"there is no slot {target}"
        assert target not in self._slots, f"slot {target} is not empty"
        self._slots[target] = self._open(source)
        del self._slots[source]

    def state_size_bytes(self, slot: int) -> int:
        return len(self._state(slot))

    def save_state(self, slot: int, buffer: memoryview) -> None:
        state = self._state(slot)
        self._record("save_state", (slot, len(self._open(slot).tokens), 0))
        buffer[: len(state)] = state

    def restore_state(self, slot: int, state: Any, size_bytes: int, num_tokens: int) -> bool:
        self._record("restore_state", (slot, num_tokens, 0))
        data = bytes(state)[:size_bytes]
        if not data.startswith(STATE_MAGIC):
            return False
        stored = array("i", data[len(STATE_MAGIC) :]).tolist()
        if len(stored) < num_tokens:
            return False
        self._start_from(slot, stored, num_tokens)
        return True

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> None:
        self._record("copy_prefix", (source, num_tokens, 0), (target, num_tokens, 0))
        self._start_from(target, self._open(source).tokens, num_tokens)

    def _state(self, slot: int) -> bytes:
        return STATE_MAGIC + array("i", self._open(slot).tokens).tobytes()

    def _start_from(self, slot: int, stored: Sequence[int], num_tokens: int) -> None:
        target = self._open(slot)
        assert not target.tokens, f"slot {slot} is not empty"
        window = self.facts.window_tokens
        assert not 0 < window < len(stored) or num_tokens >= len(stored) - 1, (
            f"a state of {len(stored)} tokens was trimmed to {num_tokens}, beyond its window"
        )
        target.tokens = list(stored[:num_tokens])
        assert target.tokens == target.history[:num_tokens], (
            f"slot {slot} starts from other tokens than its history"
        )

    def check_batch_invariance(self, budget_s: float) -> bool:  # noqa: ARG002
        assert not self._slots, f"slots {self.open_slots} are open"
        return self._is_batch_invariant

    def close(self) -> None:
        self.is_closed = True

    def _record(self, name: str, *rows: tuple[int, int, int]) -> None:
        assert not self.is_closed, f"{name} after close"
        self.calls.append(Call(name, rows))

    def _step(self) -> None:
        self.num_steps += 1
        if self.num_steps == self.fail_at_step:
            raise RuntimeError(f"step {self.num_steps} was told to fail")

    def _open(self, slot: int) -> _Slot:
        assert slot in self._slots, f"slot {slot} is not open"
        return self._slots[slot]

    def _feed(self, slot: int, tokens: Sequence[int], position: int) -> None:
        state = self._open(slot)
        held = len(state.tokens)
        assert position == held, f"slot {slot} is fed position {position}, the next is {held}"
        assert held + len(tokens) <= self.facts.context_tokens, f"slot {slot} is full"
        state.tokens.extend(tokens)

    def _draw(self, slot: int, index: int) -> int:
        state = self._open(slot)
        assert state.next_index in (None, index), (
            f"slot {slot} draws index {index}, the next is {state.next_index}"
        )
        state.next_index = index + 1
        state.drawn = self._next_token(state, index)
        return state.drawn

    def _next_token(self, state: _Slot, index: int) -> int:
        text = b"".join(self.piece(token) for token in state.tokens)
        for prompt, answer in self._answers.items():
            if text.startswith(prompt):
                return answer[index] if index < len(answer) else END
        key = f"{state.seed} {index} {state.tokens}".encode()
        number = int.from_bytes(blake2b(key, digest_size=8).digest())
        may_end = self._ends_one_in > 0 and not state.sampling.ignore_eos
        if may_end and number % self._ends_one_in == 0:
            return END
        return ord("a") + (number >> 32) % 26
