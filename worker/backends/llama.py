"""The door to llama.cpp: one model, one context of ``slots`` sequences, on the low-level API.

It knows which shapes of a ``llama_decode`` give the same bits whoever else is in the batch, and
keeps to them. It knows nothing of jobs, of plans, or of text that is held back.
"""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import llama_cpp as llama

from shared.errors import BadRequest, ModelUnusable, NoChatTemplate
from shared.footprint import cells_per_slot
from shared.protocol import Message, Sampling, Tool
from shared.settings import MAX_CONTEXT_TOKENS, WeightsSharing
from worker.backends import library
from worker.backends.arrangement import (
    NEVER,
    SPLIT_ATTENTION_POSITION,
    Arrangement,
    arrange_chunks,
    arrange_rows,
    check_alike,
)
from worker.backends.base import MAX_TOGETHER_TOKENS, ModelFacts, Remark, Row, SlotChunk
from worker.backends.batch_rows import BatchRows
from worker.backends.chat_template import compile_template
from worker.backends.constraint import Constraint, Constraints
from worker.backends.invariance import is_invariant
from worker.backends.kv_states import KvStates
from worker.backends.model_card import can_forget, cell_bytes, describe, is_float, state_key
from worker.backends.sampler import Sampler
from worker.backends.vocabulary import Vocabulary

MAX_CHUNK_TOKENS = 56


class LlamaBackend:
    def __init__(
        self,
        model_path: Path,
        *,
        slots: int,
        threads: int,
        context_tokens: int = 0,
        chat_template: bytes | None = None,
        prefill_grid: int = 0,
        weights_sharing: WeightsSharing = "auto",
    ) -> None:
        """``chat_template`` is used in place of the model's own; ``prefill_grid`` makes room for chunks
        of so many tokens. Raises ``ModelUnusable``."""
        self._max_chunk = max(MAX_CHUNK_TOKENS, prefill_grid)
        self._constraints: Constraints | None = None
        self._path = model_path
        self._model: Any = None
        self._context: Any = None
        self._rows: Any = None
        self._samplers: dict[int, Sampler] = {}
        self._row_of: dict[int, int] = {}  #: by slot, in the last batch: where its logits are
        library.start()
        try:
            self._load_model(chat_template, weights_sharing)
            self._make_context(slots, threads, context_tokens)
        except BaseException:
            self.close()
            raise

    @property
    def pads_from(self) -> int | None:
        """From which position on a lone row is computed beside a second one; None: nowhere."""
        return None if self._pads_from == NEVER else self._pads_from

    def _unusable(self, reason: str) -> NoReturn:
        raise ModelUnusable(f"{self._path} cannot be used: {reason}")

    def _load_model(self, chat_template: bytes | None, sharing: WeightsSharing) -> None:
        library.forget_errors()
        if not self._path.is_file():
            self._unusable("there is no such file")
        params = library.load_params(sharing)
        # Other kernels compute other bits, which must not be mixed in one prefix.
        self._load_key = {"repacks": int(params.use_extra_bufts)}
        self._model = llama.llama_model_load_from_file(bytes(self._path), params)
        if not self._model:
            self._unusable(library.first_error("llama.cpp cannot load it"))
        if llama.llama_model_has_encoder(self._model):
            self._unusable("it has an encoder; only decoder models can generate here")
        self._vocabulary = Vocabulary(self._model)
        if self.num_vocab == 0:
            self._unusable("it has no vocabulary")
        self._constraints = Constraints(self._vocabulary)
        self._template = compile_template(
            chat_template or llama.llama_model_chat_template(self._model, None),
            self._path,
            bos_token=self._vocabulary.bos_text,
            eos_token=self._vocabulary.eos_text,
        )

    def _make_context(self, slots: int, threads: int, context_tokens: int) -> None:
        trained_tokens = llama.llama_model_n_ctx_train(self._model)
        context_tokens = context_tokens or min(trained_tokens, MAX_CONTEXT_TOKENS)
        if context_tokens > trained_tokens:
            self._unusable(f"its context is {trained_tokens} tokens, {context_tokens} were asked")
        cells = cells_per_slot(context_tokens) * slots
        # Padded rows stand alone, so each has a gap beside it.
        max_rows = max(MAX_TOGETHER_TOKENS, slots + 1, self._max_chunk)
        params = llama.llama_context_default_params()
        params.n_ctx = cells
        params.n_seq_max = slots
        params.n_batch = params.n_ubatch = max_rows
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = False
        params.swa_full = True
        params.flash_attn_type = llama.LLAMA_FLASH_ATTN_TYPE_AUTO
        library.forget_errors()
        self._context = llama.llama_init_from_model(self._model, params)
        if not self._context:
            self._unusable(library.first_error("llama.cpp cannot make a context for it"))
        memory = llama.llama_get_memory(self._context)
        if not memory:
            self._unusable("it keeps no state between tokens, so it cannot generate")
        self._kv = KvStates(self._context, memory)
        self._rows = BatchRows(self._context, max_rows)
        # NOTE: a recurrent state cannot forget the row that pads, so such a model goes without.
        self._can_pad = can_forget(self._model)
        self._pads_from = NEVER
        if self._can_pad and threads > 1:
            self._pads_from = SPLIT_ATTENTION_POSITION
        if self._can_pad and is_float(self._model):
            self._pads_from = 0
        self.facts = ModelFacts(
            description=describe(self._model),
            context_tokens=context_tokens,
            slots=slots,
            kv_cache_bytes=cells * cell_bytes(self._model),
            has_chat_template=self._template is not None,
            llama_cpp=llama.__version__,
            tool_format=self._template.tool_format if self._template else None,
            num_vocab=self.num_vocab,
            max_piece_bytes=self._vocabulary.max_piece_bytes,
            can_restore=self._can_pad,
            window_tokens=llama.llama_model_n_swa(self._model),
            state_key=state_key(self._context, params) | self._load_key,
        )

    # --- text

    @property
    def num_vocab(self) -> int:
        return self._vocabulary.num_tokens

    def count_at_least(self, text: str, *, raw: bool) -> int:
        return self._vocabulary.count_at_least(text, raw=raw)

    def tokenize(self, text: str, *, raw: bool, add_special: bool = True) -> list[int]:
        return self._vocabulary.tokenize(text, raw=raw, add_special=add_special)

    def render_chat(
        self, messages: Sequence[Message], at_s: float, tools: Sequence[Tool] = ()
    ) -> str:
        if self._template is None:
            raise NoChatTemplate()
        return self._template.render(messages, at_s, tools)

    def piece(self, token: int) -> bytes:
        return self._vocabulary.piece(token)

    def text_bytes(self, token: int) -> bytes:
        return self._vocabulary.text_bytes(token)

    def is_end(self, token: int) -> bool:
        return token in self._vocabulary.ends

    # --- slots

    def constrain(self, shape: str, known: Sequence[int]) -> Constraint:
        assert self._constraints is not None, "a model that is loaded has constraints"
        return self._constraints.begin(shape, known)

    def open_slot(
        self,
        slot: int,
        sampling: Sampling,
        seed: int,
        history: Sequence[int],
        constraint: Constraint | None = None,
    ) -> None:
        self.close_slot(slot)
        beyond = max(sampling.logit_bias, default=0)
        if beyond >= self.num_vocab:
            raise BadRequest(
                f"logit_bias: {beyond} is no token of this model, which has {self.num_vocab}",
                field="logit_bias",
            )
        self._samplers[slot] = Sampler(self._vocabulary, sampling, seed, history, constraint)

    def remark(self, slot: int) -> Remark | None:
        return self._samplers[slot].remark

    def close_slot(self, slot: int) -> None:
        self._kv.forget(slot, -1)
        sampler = self._samplers.pop(slot, None)
        if sampler is not None:
            sampler.close()

    def move_slot(self, source: int, target: int) -> None:
        assert target not in self._samplers, f"slot {target} is not empty"
        self._kv.copy(source, target)
        self._kv.forget(source, -1)
        self._samplers[target] = self._samplers.pop(source)

    def state_size_bytes(self, slot: int) -> int:
        return self._kv.size_bytes(slot)

    def save_state(self, slot: int, buffer: memoryview) -> None:
        self._kv.save(slot, buffer)

    def restore_state(self, slot: int, state: Any, size_bytes: int, num_tokens: int) -> bool:
        return self._kv.restore(slot, state, size_bytes, num_tokens)

    def copy_prefix(self, source: int, target: int, num_tokens: int) -> None:
        self._kv.copy(source, target)
        self._kv.forget(target, num_tokens)

    def copy_slot(self, source: int, *targets: int) -> None:
        """What the slot has computed, not its sampler."""
        self._kv.copy(source, *targets)

    def forget(self, slot: int, position: int) -> None:
        """What the slot has computed from ``position`` on."""
        self._kv.forget(slot, position)

    # --- steps

    def prefill(self, chunks: Sequence[SlotChunk]) -> None:
        check_alike(chunks, self._max_chunk)
        self._run(arrange_chunks(chunks, pads_from=self._pads_from, can_pad=self._can_pad))

    def sample_prefill(self, slot: int, index: int) -> int:
        return self._draw(slot, index)

    def decode(self, rows: Sequence[Row], indices: Sequence[int]) -> list[int]:
        self.run_rows(rows)
        return [self._draw(row.slot, index) for row, index in zip(rows, indices, strict=True)]

    def run_rows(self, rows: Sequence[Row]) -> None:
        """One step of these sequences; their logits are there until the next one."""
        self._run(arrange_rows(rows, pads_from=self._pads_from))

    def _run(self, arrangement: Arrangement) -> None:
        self._row_of = {}
        for number, row in enumerate(arrangement.rows):
            self._rows.set(number, *row)
        self._rows.run(len(arrangement.rows))
        for slot, position in arrangement.pads:
            self.forget(slot, position)
        self._row_of = arrangement.row_of

    def _draw(self, slot: int, index: int) -> int:
        assert slot in self._row_of, f"the last step gave no logits for slot {slot}"
        return self._samplers[slot].draw(self._context, self._row_of[slot], index)

    def logits_bytes(self, slot: int) -> bytes:
        """The float32 logits that the last step gave for ``slot``."""
        assert slot in self._row_of, f"the last step gave no logits for slot {slot}"
        logits = llama.llama_get_logits_ith(self._context, self._row_of[slot])
        return ctypes.string_at(logits, self.num_vocab * 4)

    def check_batch_invariance(self, budget_s: float) -> bool:
        """Needs all slots empty, and leaves them so. The type of a file does not tell the types of
        all of its tensors, so where lone rows differ it tries to pad them, and goes on so if that
        helps."""
        if self.facts.slots == 1 or is_invariant(self, budget_s, MAX_CHUNK_TOKENS):
            return True
        if self._pads_from == 0 or not self._can_pad:
            return False
        usual, self._pads_from = self._pads_from, 0
        if is_invariant(self, budget_s, MAX_CHUNK_TOKENS):
            return True
        self._pads_from = usual
        return False

    def close(self) -> None:
        for sampler in self._samplers.values():
            sampler.close()
        self._samplers.clear()
        if self._constraints is not None:
            self._constraints.close()
        if self._rows is not None:
            self._rows.close()
        if self._context:
            llama.llama_free(self._context)
        if self._model:
            llama.llama_model_free(self._model)
        self._rows = self._context = self._model = None
