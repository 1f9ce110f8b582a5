"""Does what is asked of one backend, and looks at the clock. Prompts are the beginning of one long text,
so that what a slot holds of it can be used again."""

import ctypes
from pydoc_data.topics import topics
from time import perf_counter

from experiments.probe.orders import Answer, Begin, Decode, Generate, Order, ProbePlan, Read
from shared.protocol import Sampling
from worker.backends.base import Row, SlotChunk
from worker.backends.llama import LlamaBackend
from worker.chunking import next_chunk
from worker.trial.cost import cost_so_far, memory_bytes

_GREEDY = Sampling(temperature=0, ignore_eos=True)
_CHARS_PER_TOKEN = 8  #: more than there are, so that the text is long enough
_CHUNK_TOKENS = 56


class Probe:
    def __init__(self, backend: LlamaBackend, plan: ProbePlan) -> None:
        self._backend = backend
        self._plan = plan
        # English that every Python carries.
        text = "\n".join(topics.values())[: plan.context_tokens * _CHARS_PER_TOKEN]
        self._text = backend.tokenize(text, raw=True)
        while len(self._text) < plan.context_tokens:
            self._text += self._text
        self._held_tokens = 0  #: of the text, in slot 0

    def answer(self, order: Order) -> Answer:
        before, began_s = cost_so_far(self._plan.cores), perf_counter()
        if isinstance(order, Decode):
            answer = self._decode(order)
        elif isinstance(order, Read):
            answer = self._read(order)
        elif isinstance(order, Generate):
            answer = self._generate(order)
        elif isinstance(order, Begin):
            answer = self._begin(order)
        else:
            answer = Answer()
        threads_s = (perf_counter() - began_s) * self._plan.threads
        delayed_s = cost_so_far(self._plan.cores).since(before).delayed_s
        return answer.model_copy(
            update={
                "delayed_share": min(1.0, delayed_s / threads_s),
                "rss_bytes": memory_bytes()[0],
            }
        )

    def _decode(self, order: Decode) -> Answer:
        self._hold(order.position)
        self._backend.copy_slot(0, *range(1, order.rows))
        rows = [
            Row(slot, self._text[order.position + slot], order.position)
            for slot in range(order.rows)
        ]
        times_ms: list[float] = []
        end_s = perf_counter() + order.max_s
        for number in range(order.steps + 1):
            began_s = perf_counter()
            self._backend.run_rows(rows)
            now_s = perf_counter()
            if number:  # the first one warms up
                times_ms.append((now_s - began_s) * 1000)
            for row in rows:
                self._backend.forget(row.slot, row.position)
            if times_ms and now_s > end_s:
                break
        for row in rows[1:]:
            self._backend.close_slot(row.slot)
        return Answer(series=tuple(times_ms))

    def _read(self, order: Read) -> Answer:
        self._clear(0)
        times_s, borders = [], []
        began_s = perf_counter()
        position = 0
        while position < order.tokens:
            position = self._chunk(0, position, order.tokens, order.chunk_tokens)
            borders.append(position)
            times_s.append(perf_counter() - began_s)
            if times_s[-1] > order.max_s:
                break
        self._held_tokens = 0 if order.chunk_tokens > _CHUNK_TOKENS else position
        return Answer(series=tuple(times_s), positions=tuple(borders))

    def _generate(self, order: Generate) -> Answer:
        self._backend.open_slot(0, _GREEDY, 1, [])
        known = self._text[: order.prompt_tokens]
        times_s: list[float] = []
        began_s = perf_counter()
        for index in range(order.output_tokens):
            if index == 0 or order.recomputes:
                self._backend.forget(0, 0)
                position = 0
                while position < len(known):
                    size = next_chunk(position, len(known), order.chunk_tokens)
                    chunk = known[position : position + size]
                    is_last = position + size == len(known)
                    self._backend.prefill([SlotChunk(0, chunk, position, has_output=is_last)])
                    position += size
                token = self._backend.sample_prefill(0, index)
            else:
                row = Row(0, known[-1], len(known) - 1)
                token = self._backend.decode([row], [index])[0]
            known.append(token)
            times_s.append(perf_counter() - began_s)
            if times_s[-1] > order.max_s:
                break
        self._clear(0)
        return Answer(series=tuple(times_s), tokens=tuple(known[order.prompt_tokens :]))

    def _begin(self, order: Begin) -> Answer:
        """NOTE: "restore" goes into another slot than the one that computed the prefix."""
        prefix, end = order.prefix_tokens, order.prefix_tokens + order.own_tokens
        slot = 0
        state, size_bytes = None, 0
        if order.way == "recompute":
            self._clear(0)
        else:
            self._hold(prefix)
        if order.way == "restore":
            slot = 1
            size_bytes = self._backend.state_size_bytes(0)
            buffer = bytearray(size_bytes)
            self._backend.save_state(0, memoryview(buffer))
            state = (ctypes.c_uint8 * size_bytes).from_buffer(buffer)
            self._backend.open_slot(slot, _GREEDY, 1, [])
        began_s = perf_counter()
        position = 0 if order.way == "recompute" else prefix
        if state is not None and not self._backend.restore_state(slot, state, size_bytes, prefix):
            raise RuntimeError(f"a state of {size_bytes} bytes was not taken")
        copied_s = perf_counter() - began_s
        if order.way == "recompute":
            while position < prefix:
                position = self._chunk(slot, position, prefix, _CHUNK_TOKENS)
        while position < end:
            position = self._chunk(slot, position, end, _CHUNK_TOKENS)
        tokens = [self._backend.sample_prefill(slot, 0)]
        first_s = perf_counter() - began_s
        for index in range(1, order.output_tokens):
            row = Row(slot, tokens[-1], end + index - 1)
            tokens += self._backend.decode([row], [index])
        self._backend.forget(0, prefix)
        self._held_tokens = prefix
        if slot:
            self._backend.close_slot(slot)
        return Answer(
            series=(first_s * 1000, copied_s * 1000), tokens=tuple(tokens), num_bytes=size_bytes
        )

    # --- slot 0 holds the beginning of the text

    def _hold(self, num_tokens: int) -> None:
        if self._held_tokens > num_tokens:
            self._backend.forget(0, num_tokens)
            self._held_tokens = num_tokens
        if self._held_tokens == 0:
            self._clear(0)
        while self._held_tokens < num_tokens:
            self._held_tokens = self._chunk(0, self._held_tokens, num_tokens, _CHUNK_TOKENS)

    def _chunk(self, slot: int, position: int, stop: int, chunk_tokens: int) -> int:
        size = next_chunk(position, stop, chunk_tokens)
        chunk = self._text[position : position + size]
        is_last = position + size == stop
        self._backend.prefill([SlotChunk(slot, chunk, position, has_output=is_last)])
        return position + size

    def _clear(self, slot: int) -> None:
        self._backend.open_slot(slot, _GREEDY, 1, [])
        self._held_tokens = 0
