"""How much memory a worker takes: what to plan with, and what it needs at the very least. Pure."""

from dataclasses import dataclass

from shared.cores import MemoryRoom
from shared.errors import SetupError
from shared.gguf_header import ModelFacts
from shared.settings import MAX_CONTEXT_TOKENS, WeightsSharing
from shared.weight_formats import format_of

#: llama.cpp rounds the cells of a slot up to this.
CELLS_PER_BLOCK = 256
#: A worker's own memory beside model and KV cache: Python, buffers of the compute graph.
_OVERHEAD_BYTES = 150_000_000
#: What llama.cpp puts into another order for its kernels when it loads them (those of K-quants where rows are
#: multiples of 256): a private copy of the weights beside the mapped file. What has no name may be one.
_REPACKED = frozenset({"q4_0", "iq4_nl", "q4_k_m", "q4_k_s", "q2_k"})
#: What loading adds beside weights and KV cache to a worker that runs already: measured were 30 MB
#: for the smallest model and context.
_LEAST_LOADING_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Footprint:
    """``private_weights_bytes`` each worker has for itself; ``shared_weights_bytes`` are the mapped file,
    which all workers of that file have together."""

    private_weights_bytes: int
    shared_weights_bytes: int
    kv_cache_bytes: int
    slots: int
    context_tokens: int

    @property
    def private_bytes(self) -> int:
        """What each further worker of the same file adds."""
        return self.private_weights_bytes + self.kv_cache_bytes + _OVERHEAD_BYTES

    @property
    def planned_bytes(self) -> int:
        """Of a whole worker that is alone."""
        return self.private_bytes + self.shared_weights_bytes

    def __str__(self) -> str:
        return (
            f"{_mb(self.planned_bytes)} ({_mb(self.private_weights_bytes)} private weights, "
            f"{_mb(self.shared_weights_bytes)} shared weights, {_mb(self.kv_cache_bytes)} KV cache, "
            f"{_mb(_OVERHEAD_BYTES)} beside)"
        )


def footprint_of(
    facts: ModelFacts, *, slots: int, context_tokens: int, sharing: WeightsSharing = "auto"
) -> Footprint:
    """``context_tokens`` as in the settings: 0 takes the model's, at most so many."""
    context_tokens = context_tokens or min(facts.context_tokens, MAX_CONTEXT_TOKENS)
    kv_bytes = facts.kv_bytes_per_token * cells_per_slot(context_tokens) * slots
    private = facts.size_bytes if sharing == "private" or _repacks(facts, sharing) else 0
    shared = 0 if sharing == "private" else facts.size_bytes
    return Footprint(private, shared, kv_bytes, slots, context_tokens)


def _repacks(facts: ModelFacts, sharing: WeightsSharing) -> bool:
    known = format_of(facts.file_type)
    return sharing == "auto" and (known is None or known.name in _REPACKED)


def cells_per_slot(context_tokens: int) -> int:
    """One more than the context: for the row that pads a lone one in the last position."""
    return -(-(context_tokens + 1) // CELLS_PER_BLOCK) * CELLS_PER_BLOCK


def check_fit(
    facts: ModelFacts,
    *,
    slots: int,
    context_tokens: int,
    cached_bytes: int,
    rooms: tuple[MemoryRoom, ...],
    sharing: WeightsSharing = "auto",
) -> None:
    """Raises ``SetupError`` if a worker that is about to load certainly cannot run from memory.

    The bound is a lower one. The KV cache is private, and written to its end when it is made. Of the
    weights only those count that each token reads, and once: a copy that llama.cpp repacks takes the
    place of the mapped file, which can then be dropped. What stands in the page cache already
    (``cached_bytes`` of the file) may be charged to another container that maps the same file, so a
    container need not have room for it, unless weights are private; the machine must, and counts it as
    free. Caches of a shape that the header does not tell, swap, and what Python takes by now are left out.
    """
    need = footprint_of(facts, slots=slots, context_tokens=context_tokens)
    kv_bytes = need.kv_cache_bytes if facts.has_plain_cache else 0
    least_bytes = facts.dense_bytes + kv_bytes + _LEAST_LOADING_BYTES
    for room in rooms:
        may_share = room.is_container and sharing != "private"
        shared_bytes = min(cached_bytes, facts.dense_bytes) if may_share else 0
        if least_bytes - shared_bytes > room.free_bytes:
            raise SetupError(_too_large(need, least_bytes, kv_bytes, facts.dense_bytes, room))


def _too_large(
    need: Footprint, least_bytes: int, kv_bytes: int, weights_bytes: int, room: MemoryRoom
) -> str:
    if room.is_container:
        place, larger = "the memory limit of this container leaves", "raise the limit"
    else:
        place, larger = "this machine has free", "end what else takes memory"
    return (
        f"a worker needs {_mb(least_bytes)} to load this model ({_mb(weights_bytes)} weights, "
        f"{_mb(kv_bytes)} KV cache for {need.slots} slots of {need.context_tokens} tokens) and {place} "
        f"{_mb(room.free_bytes)}: lower MINI_VLLM_CONTEXT_TOKENS or MINI_VLLM_SLOTS, take a smaller "
        f"model, or {larger}"
    )


def _mb(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:.0f} MB"
