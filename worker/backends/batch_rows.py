"""The rows of a ``llama_decode``: set one by one, then run."""

from typing import Any

import llama_cpp as llama


class BatchRows:
    def __init__(self, context: Any, max_rows: int) -> None:
        self._context = context
        self._batch: Any = llama.llama_batch_init(max_rows, 0, 1)
        # Each access to a field of the batch makes a new ctypes object, so they are kept.
        self._tokens, self._positions = self._batch.token, self._batch.pos
        self._outputs = self._batch.logits
        self._slot_ids = [self._batch.seq_id[row] for row in range(max_rows)]
        for row in range(max_rows):
            self._batch.n_seq_id[row] = 1

    def set(self, row: int, slot: int, token: int, position: int, has_output: bool) -> None:
        self._tokens[row] = token
        self._positions[row] = position
        self._slot_ids[row][0] = slot
        self._outputs[row] = has_output

    def run(self, num_rows: int) -> None:
        """The first so many. Raises ``RuntimeError``."""
        self._batch.n_tokens = num_rows
        code = llama.llama_decode(self._context, self._batch)
        if code != 0:
            raise RuntimeError(f"llama_decode of {num_rows} rows failed with code {code}")

    def close(self) -> None:
        llama.llama_batch_free(self._batch)
