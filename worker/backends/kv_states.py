"""The KV of a slot as bytes: out of a context, into it, from slot to slot."""

import ctypes
from typing import Any

import llama_cpp as llama


class KvStates:
    def __init__(self, context: Any, memory: Any) -> None:
        self._context = context
        self._memory = memory
        self._scratch = (ctypes.c_uint8 * 0)()

    def size_bytes(self, slot: int) -> int:
        return int(llama.llama_state_seq_get_size(self._context, slot))

    def save(self, slot: int, buffer: memoryview) -> None:
        """Raises ``RuntimeError`` if the buffer does not hold it."""
        size = self.size_bytes(slot)
        if size > len(buffer):
            raise RuntimeError(f"the state of slot {slot} has {size} bytes, not {len(buffer)}")
        target = (ctypes.c_uint8 * size).from_buffer(buffer)
        if llama.llama_state_seq_get_data(self._context, target, size, slot) != size:
            raise RuntimeError(f"the state of slot {slot} cannot be read")

    def restore(self, slot: int, state: Any, size: int, num_tokens: int) -> bool:
        """The first ``num_tokens`` of a state into an empty slot. If it is none of this context, or has
        fewer tokens, the slot stays empty."""
        is_taken = llama.llama_state_seq_set_data(self._context, state, size, slot) == size
        last = llama.llama_memory_seq_pos_max(self._memory, slot)
        if is_taken and last + 1 >= num_tokens:
            self.forget(slot, num_tokens)
            return True
        self.forget(slot, -1)
        return False

    def copy(self, source: int, *targets: int) -> None:
        size = self.size_bytes(source)
        if size > len(self._scratch):
            self._scratch = (ctypes.c_uint8 * size)()
        if llama.llama_state_seq_get_data(self._context, self._scratch, size, source) != size:
            raise RuntimeError(f"the state of slot {source} cannot be read")
        for target in targets:
            if not llama.llama_state_seq_set_data(self._context, self._scratch, size, target):
                raise RuntimeError(f"the state of slot {source} cannot be put into slot {target}")

    def forget(self, slot: int, position: int) -> None:
        """What the slot holds from ``position`` on; -1: all."""
        llama.llama_memory_seq_rm(self._memory, slot, position, -1)
