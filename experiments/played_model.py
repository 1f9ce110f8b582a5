"""A model that costs nothing: tokens of four characters with numbers as large as those of a real
vocabulary, so that what is written of them is as long as what a real worker writes."""

from collections.abc import Sequence

from shared.errors import BadRequest
from shared.protocol import Message, Sampling, Tool
from worker.backends.base import Constraint, ModelFacts, Remark, Row, SlotChunk

_FIRST_TOKEN = 10_000
_VOCABULARY = 39_000
_CHARS_PER_TOKEN = 4


class PlayedModel:
    """A backend (worker/backends/base.py) that never ends by itself."""

    def __init__(self, *, slots: int, context_tokens: int) -> None:
        self.facts = ModelFacts(
            description="played",
            context_tokens=context_tokens,
            slots=slots,
            kv_cache_bytes=0,
            has_chat_template=True,
            llama_cpp="none",
        )

    def tokenize(
        self,
        text: str,
        *,
        raw: bool,
        add_special: bool = True,  # noqa: ARG002
    ) -> list[int]:
        return list(range(_FIRST_TOKEN, _FIRST_TOKEN + self.count_at_least(text, raw=raw)))

    def count_at_least(self, text: str, *, raw: bool) -> int:  # noqa: ARG002
        return -(-len(text) // _CHARS_PER_TOKEN)

    def render_chat(
        self,
        messages: Sequence[Message],
        at_s: float,  # noqa: ARG002
        tools: Sequence[Tool] = (),
    ) -> str:
        assert not tools, "the played model knows no tools"
        return "".join(message.content or "" for message in messages)

    def piece(self, token: int) -> bytes:
        return f" {token % 1000:03}".encode()

    def text_bytes(self, token: int) -> bytes:
        return self.piece(token)

    def is_end(self, token: int) -> bool:  # noqa: ARG002
        return False

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
        pass

    def prefill(self, chunks: Sequence[SlotChunk]) -> None:
        pass

    def sample_prefill(self, slot: int, index: int) -> int:
        return _next_token(slot, index)

    def decode(self, rows: Sequence[Row], indices: Sequence[int]) -> list[int]:
        return [_next_token(row.slot, index) for row, index in zip(rows, indices, strict=True)]

    def close_slot(self, slot: int) -> None:
        pass

    def move_slot(self, source: int, target: int) -> None:
        pass

    def check_batch_invariance(self, budget_s: float) -> bool:  # noqa: ARG002
        return True

    def close(self) -> None:
        pass


def _next_token(slot: int, index: int) -> int:
    return _FIRST_TOKEN + (slot * 7919 + index * 104_729) % _VOCABULARY
