"""What a model says of a text that is there already: logits of windows, for comparing weights.

A window of 512 tokens is read as `llama-perplexity` does: it begins with BOS where the model wants one, and
only its second half is scored, so that each token is judged with at least 256 before it.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import llama_cpp as llama
import numpy as np
from numpy.typing import NDArray

from shared.errors import ModelUnusable
from worker.backends import library
from worker.backends.batch_rows import BatchRows
from worker.backends.vocabulary import Vocabulary

WINDOW_TOKENS = 512
#: Logits that are held at once: 64 rows of a large vocabulary are 70 MB.
_ROWS = 64


class Scorer:
    def __init__(self, path: Path, threads: int) -> None:
        """Raises ``ModelUnusable``."""
        self._model: Any = None
        self._context: Any = None
        self._rows: BatchRows | None = None
        self._path = path
        library.start()
        try:
            self._load(threads)
        except BaseException:
            self.close()
            raise

    def _load(self, threads: int) -> None:
        library.forget_errors()
        params = llama.llama_model_default_params()
        self._model = llama.llama_model_load_from_file(bytes(self._path), params)
        if not self._model:
            reason = library.first_error("llama.cpp cannot load it")
            raise ModelUnusable(f"{self._path} cannot be used: {reason}")
        self._vocabulary = Vocabulary(self._model)
        if self._vocabulary.num_tokens == 0 or llama.llama_model_has_encoder(self._model):
            raise ModelUnusable(f"{self._path} cannot be scored: only decoder models can")
        context = llama.llama_context_default_params()
        context.n_ctx = context.n_batch = context.n_ubatch = WINDOW_TOKENS
        context.n_seq_max = 1
        context.n_threads = context.n_threads_batch = threads
        self._context = llama.llama_init_from_model(self._model, context)
        if not self._context:
            reason = library.first_error("llama.cpp cannot make a context for it")
            raise ModelUnusable(f"{self._path} cannot be used: {reason}")
        self._rows = BatchRows(self._context, WINDOW_TOKENS)

    @property
    def vocabulary_key(self) -> str:
        """The same for models whose tokens are the same."""
        digest = hashlib.sha256()
        for token in range(self._vocabulary.num_tokens):
            piece = self._vocabulary.text_bytes(token)
            digest.update(len(piece).to_bytes(4, "little") + piece)
        return digest.hexdigest()

    def tokenize(self, text: str) -> list[int]:
        return self._vocabulary.tokenize(text, raw=True)

    def score(self, window: Sequence[int]) -> Iterator[tuple[NDArray[np.float32], list[int]]]:
        """Rows of logits, and the tokens that the text has after them; over the second half."""
        assert len(window) == WINDOW_TOKENS, f"a window of {len(window)} tokens"
        assert self._rows is not None, "a scorer that is closed"
        tokens = list(window)
        vocab = self._vocabulary.handle
        if llama.llama_vocab_get_add_bos(vocab):
            tokens[0] = llama.llama_vocab_bos(vocab)
        llama.llama_memory_clear(llama.llama_get_memory(self._context), True)
        half, end = WINDOW_TOKENS // 2, WINDOW_TOKENS - 1
        self._run(tokens, 0, half, has_output=False)
        for begin in range(half, end, _ROWS):
            stop = min(begin + _ROWS, end)
            self._run(tokens, begin, stop, has_output=True)
            yield self._logits(stop - begin), tokens[begin + 1 : stop + 1]

    def _run(self, tokens: list[int], begin: int, end: int, *, has_output: bool) -> None:
        assert self._rows is not None
        for row, position in enumerate(range(begin, end)):
            self._rows.set(row, 0, tokens[position], position, has_output)
        try:
            self._rows.run(end - begin)
        except RuntimeError as error:
            raise ModelUnusable(f"{self._path} cannot be scored: {error}") from None

    def _logits(self, num_rows: int) -> NDArray[np.float32]:
        shape = num_rows, self._vocabulary.num_tokens
        # They are llama.cpp's until the next step.
        return np.ctypeslib.as_array(llama.llama_get_logits(self._context), shape).copy()

    def close(self) -> None:
        if self._rows is not None:
            self._rows.close()
        if self._context:
            llama.llama_free(self._context)
        if self._model:
            llama.llama_model_free(self._model)
        self._rows = self._context = self._model = None
