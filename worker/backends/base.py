"""What the engine asks of a model. ``llama.py`` and ``scripted.py`` are peers behind this protocol.

A backend holds one model and one context of ``slots`` sequences. It decides nothing: which rows run,
in which slots and in what order is the scheduler's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from shared.protocol import Message, Sampling, TokenLogprob, Tool

#: Prompt rows of several slots in one call. More gain little, and each takes memory for its logits.
MAX_TOGETHER_TOKENS = 64


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """``context_tokens`` is what one sequence can hold, prompt and answer together."""

    description: str
    context_tokens: int
    slots: int
    kv_cache_bytes: int
    has_chat_template: bool
    llama_cpp: str
    tool_format: str | None = None  #: one of ``shared.shapes.TOOL_FORMATS``
    num_vocab: int = 0
    max_piece_bytes: int = 0
    can_restore: bool = False  #: whether the state of a slot can be saved, restored and trimmed
    window_tokens: int = 0  #: how far back its local layers look; 0: it has none
    state_key: Mapping[str, str | int | float] = field(default_factory=dict)  #: see ``model_card``


@dataclass(frozen=True, slots=True)
class Row:
    """One running sequence's next input: ``token`` at ``position`` (0-based) of ``slot``."""

    slot: int
    token: int
    position: int


@dataclass(frozen=True, slots=True)
class SlotChunk:
    """Tokens of a prompt for ``slot``, from ``position`` on. ``has_output``: one is drawn after them."""

    slot: int
    tokens: Sequence[int]
    position: int
    has_output: bool = True


@dataclass(frozen=True, slots=True)
class Remark:
    """What is to be said of the token last drawn in a slot. ``is_last``: its shape allows nothing after
    it. ``error``: it is no token at all, for that reason."""

    logprob: TokenLogprob | None = None
    is_last: bool = False
    error: str = ""


#: How an answer is held to a shape: the backend's own.
Constraint = Any


class Backend(Protocol):
    @property
    def facts(self) -> ModelFacts: ...

    def tokenize(self, text: str, *, raw: bool, add_special: bool = True) -> list[int]:
        """``raw`` text gets the model's BOS as the model wants it and no special token is parsed in
        it; a rendered chat (not ``raw``) has its special tokens parsed, and BOS only once."""
        ...

    def count_at_least(self, text: str, *, raw: bool) -> int:
        """A lower bound of the number of tokens, at once: tokenizing a megabyte takes seconds."""
        ...

    def render_chat(
        self, messages: Sequence[Message], at_s: float, tools: Sequence[Tool] = ()
    ) -> str:
        """The prompt for an assistant's turn, on the day of ``at_s`` (Unix time). Raises
        ``NoChatTemplate`` or ``BadRequest``."""
        ...

    def piece(self, token: int) -> bytes:
        """The token's bytes (a part of a UTF-8 character, maybe); b"" for a control token."""
        ...

    def text_bytes(self, token: int) -> bytes:
        """Like ``piece``, and a control token as a template writes it. Raises ``ValueError``."""
        ...

    def is_end(self, token: int) -> bool:
        """Whether the token ends a generation (EOS, end of turn)."""
        ...

    def constrain(self, shape: str, known: Sequence[int]) -> Constraint:
        """For ``open_slot``: holds what follows the ``known`` tokens of an answer to a grammar of
        llguidance. Raises ``BadRequest``."""
        ...

    def open_slot(
        self,
        slot: int,
        sampling: Sampling,
        seed: int,
        history: Sequence[int],
        constraint: Constraint = None,
    ) -> None:
        """Empties the slot and gives it a sampler that has seen ``history`` (prompt and any tokens
        that were generated before), as penalties ask for it."""
        ...

    def prefill(self, chunks: Sequence[SlotChunk]) -> None:
        """One chunk of a prompt: 2 to 56 tokens, or up to the grid; a lone token is padded. Or chunks of
        equal size for neighbouring slots, sorted by slot, ``MAX_TOGETHER_TOKENS`` in all."""
        ...

    def sample_prefill(self, slot: int, index: int) -> int:
        """Draws the token after the chunk just prefilled in this slot; ``index`` counts the tokens
        generated before it, and with the seed it alone determines the draw."""
        ...

    def decode(self, rows: Sequence[Row], indices: Sequence[int]) -> list[int]:
        """One step of all running sequences, sorted by slot; draws the next token of each."""
        ...

    def remark(self, slot: int) -> Remark | None:
        """On the token that was drawn last in this slot."""
        ...

    def close_slot(self, slot: int) -> None: ...

    def move_slot(self, source: int, target: int) -> None:
        """Moves a sequence (KV and sampler) into an empty slot."""
        ...

    def check_batch_invariance(self, budget_s: float) -> bool:
        """Whether a row decoded alone, and in a batch of all slots, gives the same logits bit by bit."""
        ...

    def close(self) -> None: ...


class StateBackend(Backend, Protocol):
    """One whose slots can be saved, restored and trimmed (``ModelFacts.can_restore``)."""

    def state_size_bytes(self, slot: int) -> int: ...

    def save_state(self, slot: int, buffer: memoryview) -> None:
        """Copies the KV of the slot out, ``state_size_bytes`` of them."""
        ...

    def restore_state(self, slot: int, state: Any, size_bytes: int, num_tokens: int) -> bool:
        """Puts the first ``num_tokens`` of a saved state (a ctypes array) into a slot that is open and
        empty. False if the state is not for this context; the slot is empty then."""
        ...

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> None:
        """The KV of the first tokens of one slot into another that is open and empty."""
        ...
