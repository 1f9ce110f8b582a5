"""Which tokens may come next, where an answer is held to a shape: llguidance over a model's vocabulary.

A constraint is a function of the shape and of the tokens so far, so a resumed job replays its own.
"""

from collections.abc import Sequence
from threading import Thread
from typing import Any

import numpy as np
from llguidance import LLMatcher, LLTokenizer
from numpy.typing import NDArray

from shared.errors import BadRequest
from shared.matching import LIMITS, reason_of
from worker.backends.vocabulary import Vocabulary

Logits = NDArray[np.float32]


class Constraint:
    """``error`` says why it can go no further; it is '' as long as all is well."""

    def __init__(self, matcher: LLMatcher, num_vocab: int) -> None:
        self._matcher = matcher
        self._num_vocab = num_vocab
        self._mask = np.zeros((num_vocab + 31) // 32, dtype=np.int32)
        self.error = ""

    def mask(self, logits: Logits) -> None:
        """Sets those of tokens that may not come to minus infinity, in place."""
        self._matcher.unsafe_compute_mask_ptr(self._mask.ctypes.data, self._mask.nbytes)
        if self._matcher.is_error():
            self.error = reason_of(self._matcher)
            return
        bits = self._mask.view(np.uint8)
        allowed = np.unpackbits(bits, bitorder="little", count=self._num_vocab).view(np.bool_)
        if not allowed.any():
            self.error = "no token may follow"
            return
        logits[~allowed] = -np.inf

    def accept(self, token: int) -> None:
        if not self._matcher.consume_token(token):
            self.error = reason_of(self._matcher) or f"token {token} may not follow"

    @property
    def is_complete(self) -> bool:
        """Nothing but the end may follow."""
        return self._matcher.is_stopped()


class Constraints:
    """What the constraints of one model have in common. It is made in a thread of its own, since that
    takes a third of a second, and seconds for a large vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._tokenizer: LLTokenizer | None = None
        self._error: Exception | None = None
        self._maker = Thread(target=self._make, name="constraints", daemon=True)
        self._maker.start()

    def begin(self, shape: str, known: Sequence[int]) -> Constraint:
        """``known`` are the tokens of the answer so far. Raises ``BadRequest``."""
        self._maker.join()
        if self._tokenizer is None:
            raise RuntimeError(f"no answer can be held to a shape: {self._error}")
        matcher = LLMatcher(self._tokenizer, shape, log_level=0, limits=LIMITS)
        if matcher.is_error():
            raise BadRequest(f"the shape of the answer: {reason_of(matcher)}")
        constraint = Constraint(matcher, self._vocabulary.num_tokens)
        if known and not matcher.consume_tokens(list(known)):
            raise BadRequest("the shape of the answer: the tokens so far do not fit it")
        return constraint

    def close(self) -> None:
        """The model is not to go before this is done."""
        self._maker.join()

    def _make(self) -> None:
        try:
            vocabulary = self._vocabulary
            # A control token is no text: llguidance knows it by a byte that is in no UTF-8. Others that
            # look like one, as <tool_call> may, are text that a grammar can ask for.
            texts = [
                b"\xff" * vocabulary.is_control(token) + vocabulary.text_bytes(token)
                for token in range(vocabulary.num_tokens)
            ]
            make: Any = LLTokenizer.from_llamacpp  # type: ignore[attr-defined]
            self._tokenizer = make(
                tokens=texts,
                vocab_ptr=vocabulary.handle,
                tokenize_fptr=vocabulary.tokenize_address,
                eos_token=sorted(vocabulary.ends),
                slices=None,
            )
        except Exception as error:
            self._error = error
