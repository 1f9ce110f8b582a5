"""Which rows a ``llama_decode`` gets, so that a sequence's bits do not depend on what else is in it. Pure.

llama.cpp chooses kernels by the number of rows: a lone one has its own, in the products of a float model
and in attention that threads share, and those give other bits. So where it would be alone it is computed
beside a second one, which is forgotten.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from worker.backends.base import MAX_TOGETHER_TOKENS, Row, SlotChunk

#: A lone row of this position or a later one is padded. NEVER: of none.
NEVER = 1 << 62
#: llama.cpp gives attention cells by 256, so the 257th token of a slot is the first that sees 512 of
#: them, from where on it shares a lone row's attention among threads (a pad stands one position beyond).
SPLIT_ATTENTION_POSITION = 255


@dataclass(frozen=True, slots=True)
class Arrangement:
    """``rows``: slot, token, position, and whether its logits are wanted. ``row_of``: by slot, the row
    whose logits are to be drawn from. ``pads``: slot and position of what is forgotten afterwards."""

    rows: list[tuple[int, int, int, bool]] = field(default_factory=list)
    row_of: dict[int, int] = field(default_factory=dict)
    pads: list[tuple[int, int]] = field(default_factory=list)

    def pad(self, slot: int, token: int, position: int, *, has_output: bool) -> None:
        self.rows.append((slot, token, position, has_output))
        self.pads.append((slot, position))


def check_alike(chunks: Sequence[SlotChunk], max_chunk: int) -> None:
    """Of unequal chunks, or with a hole between their slots, llama.cpp makes calls of its own, and may
    leave one row for the last."""
    size, slots = len(chunks[0].tokens), [chunk.slot for chunk in chunks]
    assert 1 <= size <= max_chunk, f"a chunk of {size} tokens"
    assert all(len(chunk.tokens) == size for chunk in chunks), "chunks of unequal size together"
    assert slots == list(range(slots[0], slots[0] + len(slots))), f"no neighbours: {slots}"
    if len(chunks) > 1:
        assert size > 1, "lone rows together"
        assert size * len(chunks) <= MAX_TOGETHER_TOKENS, f"{size * len(chunks)} rows together"


def arrange_chunks(
    chunks: Sequence[SlotChunk], *, pads_from: int, can_pad: bool = True
) -> Arrangement:
    """A chunk of one token is padded wherever that can be, as chunks of any size are to give the same."""
    arrangement = Arrangement()
    rows = arrangement.rows
    # A float model also multiplies one row of outputs by another kernel than two.
    num_outputs = 2 if pads_from == 0 else 1
    for chunk in chunks:
        size = len(chunk.tokens)
        first_output = size - num_outputs if chunk.has_output else size
        rows += [
            (chunk.slot, token, chunk.position + i, i >= first_output)
            for i, token in enumerate(chunk.tokens)
        ]
        if chunk.has_output:
            arrangement.row_of[chunk.slot] = len(rows) - 1
    if len(rows) == 1 and can_pad:
        (chunk,) = chunks
        has_output = chunk.has_output and num_outputs == 2
        arrangement.pad(chunk.slot, chunk.tokens[0], chunk.position + 1, has_output=has_output)
    return arrangement


def arrange_rows(rows: Sequence[Row], *, pads_from: int) -> Arrangement:
    """``rows`` by slot. llama.cpp runs each stretch of successive slots by itself: a hole isolates rows."""
    arrangement = Arrangement()
    for i, row in enumerate(rows):
        arrangement.row_of[row.slot] = len(arrangement.rows)
        arrangement.rows.append((row.slot, row.token, row.position, True))
        has_left = i > 0 and rows[i - 1].slot == row.slot - 1
        has_right = i + 1 < len(rows) and rows[i + 1].slot == row.slot + 1
        if row.position >= pads_from and not has_left and not has_right:
            arrangement.pad(row.slot, row.token, row.position + 1, has_output=True)
    return arrangement
