"""The self-check at start: does a sequence's next token depend on what else is in the batch?

It compares logits bit by bit, past 256 cells, where a lone row takes another attention kernel.
"""

from collections.abc import Sequence
from time import monotonic
from typing import Protocol

from worker.backends.base import ModelFacts, Row, SlotChunk
from worker.backends.sampler import derive_seed

CHECK_TOKENS = 300


class Checked(Protocol):
    """What the check needs of a backend. All slots are empty before and after it."""

    facts: ModelFacts

    @property
    def num_vocab(self) -> int: ...
    def prefill(self, chunks: Sequence[SlotChunk]) -> None: ...
    def run_rows(self, rows: Sequence[Row]) -> None: ...
    def copy_slot(self, source: int, *targets: int) -> None: ...
    def forget(self, slot: int, position: int) -> None: ...
    def close_slot(self, slot: int) -> None: ...
    def logits_bytes(self, slot: int) -> bytes: ...


def is_invariant(backend: Checked, budget_s: float, chunk_tokens: int) -> bool:
    """``budget_s`` bounds the time for the prompt it begins with."""
    end_s = monotonic() + budget_s
    prompt = [derive_seed(1, i) % backend.num_vocab for i in range(CHECK_TOKENS)]
    prompt = prompt[: backend.facts.context_tokens - 1]
    position = 0
    try:
        while position < len(prompt) and (position == 0 or monotonic() < end_s):
            chunk = prompt[position : position + chunk_tokens]
            backend.prefill([SlotChunk(0, chunk, position)])
            position += len(chunk)
        return _has_free_borders(backend, prompt[:position]) and all(
            _has_free_batches(backend, token, position) for token in prompt[:2]
        )
    finally:
        for slot in range(backend.facts.slots):
            backend.close_slot(slot)


def _has_free_borders(backend: Checked, prompt: Sequence[int]) -> bool:
    """Whether other prompt chunks give the same, as resuming relies on it, and chunks beside another's."""
    expected = backend.logits_bytes(0)
    start = max(0, len(prompt) - 24)
    backend.forget(0, start)
    has_pair = start > 0
    if has_pair:
        backend.copy_slot(0, 1)
    for position in range(start, len(prompt), 3):
        backend.prefill([SlotChunk(0, prompt[position : position + 3], position)])
    if backend.logits_bytes(0) != expected:
        return False
    if not has_pair:
        return True
    backend.forget(0, start)
    rest = prompt[start:]
    backend.prefill([SlotChunk(0, rest, start), SlotChunk(1, rest[::-1], start)])
    return backend.logits_bytes(0) == expected


def _has_free_batches(backend: Checked, token: int, position: int) -> bool:
    slots = backend.facts.slots
    backend.copy_slot(0, *range(1, slots))
    # NOTE: the rows differ in their tokens: K-quants let the neighbours of a row change it,
    # some rows only, and none where the neighbours are equal.
    rows = [Row(slot, (token + slot) % backend.num_vocab, position) for slot in range(slots)]
    sizes = sorted({size for size in (2, 3, 4, 5, 8, slots) if size <= slots})
    lone = [rows[size - 1 : size] for size in (1, *sizes)]
    expected: dict[int, bytes] = {}
    for batch in [*lone, *(rows[:size] for size in sizes)]:
        backend.run_rows(batch)
        for row in batch:
            logits = backend.logits_bytes(row.slot)
            if len(batch) == 1:
                expected[row.slot] = logits
            if logits != expected.get(row.slot, logits):
                return False
            backend.forget(row.slot, position)
    return True
