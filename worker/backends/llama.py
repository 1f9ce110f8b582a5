"""The door to llama.cpp: one model, one context of ``slots`` sequences, on the low-level API.

It knows which shapes of a ``llama_decode`` give the same bits whoever else is in the batch, and
keeps to them. It knows nothing of jobs, of plans, or of text that is held back.
"""

import ctypes
import logging
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn

import llama_cpp as llama

from shared.errors import ModelUnusable, NoChatTemplate
from shared.protocol import Message, Sampling
from shared.settings import MAX_CONTEXT_TOKENS
from worker.backends.base import ModelFacts, Row
from worker.backends.chat_template import compile_template
from worker.backends.sampler import Sampler, derive_seed

logger = logging.getLogger(__name__)

MAX_CHUNK_TOKENS = 56
MAX_COUNTED_CONTROLS = 256
CELLS_PER_BLOCK = 256  #: llama.cpp rounds the cells of a sequence up to this
FLOAT_FTYPES = frozenset({0, 1, 32})  #: llama.h: F32, F16, BF16
FTYPE_GUESSED = 1024  #: llama.h: a flag
CHECK_TOKENS = 300  #: past 256 cells, where a lone row takes another attention kernel
LOG_LEVEL_ERROR = 4

_errors: list[str] = []  #: what llama.cpp said since the last load began


@llama.llama_log_callback  # type: ignore[untyped-decorator]
def _forward_log(level: int, text: bytes, _data: object) -> None:
    line = text.decode(errors="replace").rstrip()
    if level == LOG_LEVEL_ERROR and line:
        _errors.append(line)
    if line.strip("."):
        logger.debug("%s", line)


class LlamaBackend:
    def __init__(
        self, model_path: Path, *, slots: int, threads: int, context_tokens: int = 0
    ) -> None:
        self._path = model_path
        self._model: Any = None
        self._context: Any = None
        self._batch: Any = None
        self._samplers: dict[int, Sampler] = {}
        self._pieces: dict[int, bytes] = {}
        self._state = (ctypes.c_uint8 * 0)()
        self._row_of: dict[int, int] = {}  #: by slot, in the last batch: where its logits are
        llama.llama_log_set(_forward_log, ctypes.c_void_p(0))
        llama.llama_backend_init()
        try:
            self._load_model()
            self._make_context(slots, threads, context_tokens)
        except BaseException:
            self.close()
            raise

    def _unusable(self, reason: str) -> NoReturn:
        raise ModelUnusable(f"{self._path} cannot be used: {reason}")

    def _load_model(self) -> None:
        _errors.clear()
        if not self._path.is_file():
            self._unusable("there is no such file")
        params = llama.llama_model_default_params()
        self._model = llama.llama_model_load_from_file(bytes(self._path), params)
        if not self._model:
            self._unusable(_errors[0] if _errors else "llama.cpp cannot load it")
        if llama.llama_model_has_encoder(self._model):
            self._unusable("it has an encoder; only decoder models can generate here")
        self._vocab = llama.llama_model_get_vocab(self._model)
        self._num_vocab = llama.llama_vocab_n_tokens(self._vocab)
        if self._num_vocab == 0:
            self._unusable("it has no vocabulary")
        is_end = llama.llama_vocab_is_eog
        self._ends = frozenset(t for t in range(self._num_vocab) if is_end(self._vocab, t))
        texts = [self._piece_bytes(t, True).decode(errors="replace") for t in self._controls()]
        # Those that are a part of another one would be counted twice.
        self._specials = [t for t in texts if t and sum(t in other for other in texts) == 1]
        self._max_piece_bytes = max(len(self._piece_bytes(t, True)) for t in range(self._num_vocab))
        self._template = compile_template(
            llama.llama_model_chat_template(self._model, None),
            self._path,
            bos_token=self._text_of(llama.llama_vocab_bos(self._vocab)),
            eos_token=self._text_of(llama.llama_vocab_eos(self._vocab)),
        )

    def _make_context(self, slots: int, threads: int, context_tokens: int) -> None:
        trained_tokens = llama.llama_model_n_ctx_train(self._model)
        context_tokens = context_tokens or min(trained_tokens, MAX_CONTEXT_TOKENS)
        if context_tokens > trained_tokens:
            self._unusable(f"its context is {trained_tokens} tokens, {context_tokens} were asked")
        # One spare cell, for the row that pads a lone one in the last position.
        cells = -(-(context_tokens + 1) // CELLS_PER_BLOCK) * CELLS_PER_BLOCK * slots
        max_rows = max(64, slots + 1)  # padded rows stand alone, so each has a gap beside it
        params = llama.llama_context_default_params()
        params.n_ctx = cells
        params.n_seq_max = slots
        params.n_batch = params.n_ubatch = max_rows
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = False
        params.swa_full = True
        params.flash_attn_type = llama.LLAMA_FLASH_ATTN_TYPE_AUTO
        _errors.clear()
        self._context = llama.llama_init_from_model(self._model, params)
        if not self._context:
            self._unusable(_errors[0] if _errors else "llama.cpp cannot make a context for it")
        self._memory = llama.llama_get_memory(self._context)
        if not self._memory:
            self._unusable("it keeps no state between tokens, so it cannot generate")
        self._make_batch(max_rows)
        # NOTE: llama.cpp has other kernels for one row: in the products of a float model, and in
        # attention from 512 cells on, which differs when several threads share it. A recurrent
        # state cannot forget the row that pads, so such a model goes without.
        self._can_pad = not (
            llama.llama_model_is_recurrent(self._model) or llama.llama_model_is_hybrid(self._model)
        )
        is_float = (llama.llama_model_ftype(self._model) & ~FTYPE_GUESSED) in FLOAT_FTYPES
        self._pads_lone_rows = self._can_pad and (is_float or threads > 1)
        self.facts = ModelFacts(
            description=self._description(),
            context_tokens=context_tokens,
            slots=slots,
            kv_cache_bytes=cells * self._cell_bytes(),
            has_chat_template=self._template is not None,
            llama_cpp=llama.__version__,
        )

    def _make_batch(self, max_rows: int) -> None:
        self._batch = llama.llama_batch_init(max_rows, 0, 1)
        # Each access to a field of the batch makes a new ctypes object, so they are kept.
        self._tokens, self._positions = self._batch.token, self._batch.pos
        self._outputs = self._batch.logits
        self._slot_ids = [self._batch.seq_id[row] for row in range(max_rows)]
        for row in range(max_rows):
            self._batch.n_seq_id[row] = 1

    def _description(self) -> str:
        text = ctypes.create_string_buffer(256)
        llama.llama_model_desc(self._model, text, len(text))
        return text.value.decode(errors="replace")

    def _cell_bytes(self) -> int:
        model = self._model
        head_dims = llama.llama_model_n_embd(model) // max(1, llama.llama_model_n_head(model))
        architecture = self._metadata("general.architecture")
        key_dims = int(self._metadata(f"{architecture}.attention.key_length") or head_dims)
        value_dims = int(self._metadata(f"{architecture}.attention.value_length") or head_dims)
        heads = llama.llama_model_n_layer(model) * llama.llama_model_n_head_kv(model)
        return int(heads * (key_dims + value_dims) * 2)

    def _controls(self) -> list[int]:
        """The first control tokens; some models have thousands that they do not use."""
        is_control = llama.llama_vocab_is_control
        found = (t for t in range(self._num_vocab) if is_control(self._vocab, t))
        return list(islice(found, MAX_COUNTED_CONTROLS))

    def _metadata(self, key: str) -> str:
        value = ctypes.create_string_buffer(256)
        llama.llama_model_meta_val_str(self._model, key.encode(), value, len(value))
        return value.value.decode(errors="replace")

    # --- text

    def count_at_least(self, text: str, *, raw: bool) -> int:
        # llama.cpp's search for special tokens takes the square of how many there are.
        num_special = 0 if raw else sum(text.count(special) for special in self._specials)
        return max(num_special, -(-len(text.encode()) // self._max_piece_bytes))

    def tokenize(self, text: str, *, raw: bool) -> list[int]:
        encoded = text.encode()
        size = len(encoded) + 8
        while True:
            buffer = (llama.llama_token * size)()
            count = llama.llama_tokenize(
                self._vocab, encoded, len(encoded), buffer, size, True, not raw
            )
            if count >= 0:
                break
            size = -count
        tokens = list(buffer[:count])
        bos = llama.llama_vocab_bos(self._vocab)
        written_twice = not raw and tokens[:2] == [bos, bos]
        if written_twice and llama.llama_vocab_get_add_bos(self._vocab):
            return tokens[1:]
        return tokens

    def render_chat(self, messages: Sequence[Message]) -> str:
        if self._template is None:
            raise NoChatTemplate()
        return self._template.render(messages)

    def _text_of(self, token: int) -> str:
        return "" if token < 0 else self._piece_bytes(token, True).decode(errors="replace")

    def _piece_bytes(self, token: int, special: bool) -> bytes:
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            count = llama.llama_token_to_piece(self._vocab, token, buffer, size, 0, special)
            if count >= 0:
                return buffer.raw[:count]
            size = -count

    def piece(self, token: int) -> bytes:
        piece = self._pieces.get(token)
        if piece is None:
            piece = self._pieces[token] = self._piece_bytes(token, False)
        return piece

    def is_end(self, token: int) -> bool:
        return token in self._ends

    # --- slots

    def open_slot(self, slot: int, sampling: Sampling, seed: int, history: Sequence[int]) -> None:
        self.close_slot(slot)
        self._samplers[slot] = Sampler(self._vocab, self._ends, sampling, seed, history)

    def close_slot(self, slot: int) -> None:
        llama.llama_memory_seq_rm(self._memory, slot, -1, -1)
        sampler = self._samplers.pop(slot, None)
        if sampler is not None:
            sampler.close()

    def move_slot(self, source: int, target: int) -> None:
        assert target not in self._samplers, f"slot {target} is not empty"
        self._copy_state(source, target)
        llama.llama_memory_seq_rm(self._memory, source, -1, -1)
        self._samplers[target] = self._samplers.pop(source)

    def _copy_state(self, source: int, *targets: int) -> None:
        size = llama.llama_state_seq_get_size(self._context, source)
        if size > len(self._state):
            self._state = (ctypes.c_uint8 * size)()
        if llama.llama_state_seq_get_data(self._context, self._state, size, source) != size:
            raise RuntimeError(f"the state of slot {source} cannot be read")
        for target in targets:
            if not llama.llama_state_seq_set_data(self._context, self._state, size, target):
                raise RuntimeError(f"the state of slot {source} cannot be put into slot {target}")

    # --- steps

    def prefill(self, slot: int, tokens: Sequence[int], position: int) -> None:
        last = len(tokens) - 1
        assert 0 <= last < MAX_CHUNK_TOKENS, f"a chunk of {len(tokens)} tokens"
        # A float model also multiplies one output row by another kernel than two.
        first_output = last - 1 if self._pads_lone_rows else last
        for row, token in enumerate(tokens):
            self._set_row(row, slot, token, position + row, row >= first_output)
        is_padded = last == 0 and self._can_pad
        if is_padded:
            self._set_row(1, slot, tokens[0], position + 1, self._pads_lone_rows)
        self._run(len(tokens) + is_padded)
        if is_padded:
            llama.llama_memory_seq_rm(self._memory, slot, position + 1, -1)
        self._row_of = {slot: last}

    def sample_prefill(self, slot: int, index: int) -> int:
        return self._draw(slot, index)

    def decode(self, rows: Sequence[Row], indices: Sequence[int]) -> list[int]:
        self._decode(rows)
        return [self._draw(row.slot, index) for row, index in zip(rows, indices, strict=True)]

    def _decode(self, rows: Sequence[Row]) -> None:
        row_of, padded, count = {}, [], 0
        for i, row in enumerate(rows):
            self._set_row(count, row.slot, row.token, row.position, True)
            row_of[row.slot] = count
            count += 1
            # llama.cpp runs each stretch of successive slots by itself, so a hole isolates rows.
            has_left = i > 0 and rows[i - 1].slot == row.slot - 1
            has_right = i + 1 < len(rows) and rows[i + 1].slot == row.slot + 1
            if self._pads_lone_rows and not has_left and not has_right:
                self._set_row(count, row.slot, row.token, row.position + 1, True)
                padded.append(row)
                count += 1
        self._run(count)
        for row in padded:
            llama.llama_memory_seq_rm(self._memory, row.slot, row.position + 1, -1)
        self._row_of = row_of

    def _set_row(self, row: int, slot: int, token: int, position: int, has_output: bool) -> None:
        self._tokens[row] = token
        self._positions[row] = position
        self._slot_ids[row][0] = slot
        self._outputs[row] = has_output

    def _run(self, num_rows: int) -> None:
        self._row_of = {}
        self._batch.n_tokens = num_rows
        code = llama.llama_decode(self._context, self._batch)
        if code != 0:
            raise RuntimeError(f"llama_decode of {num_rows} rows failed with code {code}")

    def _draw(self, slot: int, index: int) -> int:
        assert slot in self._row_of, f"the last step gave no logits for slot {slot}"
        return self._samplers[slot].draw(self._context, self._row_of[slot], index)

    def logits_bytes(self, slot: int) -> bytes:
        """The float32 logits that the last step gave for ``slot``."""
        assert slot in self._row_of, f"the last step gave no logits for slot {slot}"
        logits = llama.llama_get_logits_ith(self._context, self._row_of[slot])
        return ctypes.string_at(logits, self._num_vocab * 4)

    def check_batch_invariance(self, budget_s: float) -> bool:
        """Also whether other prompt chunks give the same, as resuming relies on it. Needs all slots
        empty, and leaves them so. ``budget_s`` bounds the time for the prompt it begins with.

        The type of a file does not tell the types of all of its tensors, so where lone rows differ
        it tries to pad them, and goes on so if that helps."""
        if self.facts.slots == 1 or self._is_invariant(budget_s):
            return True
        if self._pads_lone_rows or not self._can_pad:
            return False
        self._pads_lone_rows = True
        self._pads_lone_rows = self._is_invariant(budget_s)
        return self._pads_lone_rows

    def _is_invariant(self, budget_s: float) -> bool:
        end = monotonic() + budget_s
        prompt = [derive_seed(1, i) % self._num_vocab for i in range(CHECK_TOKENS)]
        prompt = prompt[: self.facts.context_tokens - 1]
        position = 0
        try:
            while position < len(prompt) and (position == 0 or monotonic() < end):
                chunk = prompt[position : position + MAX_CHUNK_TOKENS]
                self.prefill(0, chunk, position)
                position += len(chunk)
            return self._has_free_borders(prompt[:position]) and all(
                self._has_free_batches(token, position) for token in prompt[:2]
            )
        finally:
            for slot in range(self.facts.slots):
                self.close_slot(slot)

    def _has_free_borders(self, prompt: Sequence[int]) -> bool:
        expected = self.logits_bytes(0)
        start = max(0, len(prompt) - 24)
        llama.llama_memory_seq_rm(self._memory, 0, start, -1)
        for position in range(start, len(prompt), 3):
            self.prefill(0, prompt[position : position + 3], position)
        return self.logits_bytes(0) == expected

    def _has_free_batches(self, token: int, position: int) -> bool:
        slots = self.facts.slots
        self._copy_state(0, *range(1, slots))
        # NOTE: the rows differ in their tokens: K-quants let the neighbours of a row change it,
        # some rows only, and none where the neighbours are equal.
        rows = [Row(slot, (token + slot) % self._num_vocab, position) for slot in range(slots)]
        sizes = sorted({size for size in (2, 3, 4, 5, 8, slots) if size <= slots})
        lone = [rows[size - 1 : size] for size in (1, *sizes)]
        expected: dict[int, bytes] = {}
        for batch in [*lone, *(rows[:size] for size in sizes)]:
            self._decode(batch)
            for row in batch:
                logits = self.logits_bytes(row.slot)
                if len(batch) == 1:
                    expected[row.slot] = logits
                if logits != expected.get(row.slot, logits):
                    return False
                llama.llama_memory_seq_rm(self._memory, row.slot, position, -1)
        return True

    def close(self) -> None:
        for sampler in self._samplers.values():
            sampler.close()
        self._samplers.clear()
        if self._batch is not None:
            llama.llama_batch_free(self._batch)
        if self._context:
            llama.llama_free(self._context)
        if self._model:
            llama.llama_model_free(self._model)
        self._batch = self._context = self._model = None
