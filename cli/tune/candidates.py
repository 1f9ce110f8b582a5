"""What can be tried: formats x (workers x threads) x slots x prompt chunk. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from shared.footprint import Footprint
from shared.settings import Settings

MAX_SLOTS = 128
MAX_CHUNK_ROWS = int(Settings.model_fields["prefill_chunk_tokens"].default)
_LEAST_SLOTS = 4
_SLOTS_STEP = 4
#: What a worker takes beside weights and KV cache: Python, buffers of the compute graph.
_OVERHEAD_BYTES = 150_000_000
_SMALL_CHUNK_TOKENS = 32


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    weight_format: str
    workers: int
    threads: int
    slots: int
    chunk_tokens: int = MAX_CHUNK_ROWS

    def __str__(self) -> str:
        chunk = "" if self.chunk_tokens == MAX_CHUNK_ROWS else f", chunks of {self.chunk_tokens}"
        return (
            f"{self.weight_format}, {self.workers} x {self.threads} threads, "
            f"{self.slots} slots{chunk}"
        )


def layouts(num_cores: int) -> list[tuple[int, int]]:
    """(workers, threads) that use all cores or nearly so: many small workers first."""
    threads = [1]
    while threads[-1] * 2 <= num_cores:
        threads.append(threads[-1] * 2)
    if threads[-1] != num_cores:
        threads.append(num_cores)
    return [(num_cores // count, count) for count in threads]


def slots_for(concurrency: int, workers: int) -> int:
    """Of each worker, so that all clients have one: a few more, since they do not spread evenly."""
    share = -(-concurrency // workers)
    return min(MAX_SLOTS, max(_LEAST_SLOTS, -(-share // _SLOTS_STEP) * _SLOTS_STEP))


def shares(concurrency: int, workers: int) -> list[int]:
    """How many clients each worker has; the first ones have one more."""
    least, more = divmod(concurrency, workers)
    return [least + (number < more) for number in range(workers)]


def all_candidates(formats: Iterable[str], num_cores: int, concurrency: int) -> list[Candidate]:
    return [
        Candidate(name, workers, threads, slots_for(concurrency, workers))
        for workers, threads in layouts(num_cores)
        for name in formats
    ]


def neighbours(best: Candidate, concurrency: int) -> list[Candidate]:
    """Around the best: what a coarse look leaves out."""
    around = []
    share = -(-concurrency // best.workers)
    fewer = max(_LEAST_SLOTS, share // 2)
    if fewer < best.slots:
        around.append(replace(best, slots=fewer))
    if best.chunk_tokens == MAX_CHUNK_ROWS:
        around.append(replace(best, chunk_tokens=_SMALL_CHUNK_TOKENS))
    if best.workers >= 4:  # where memory is the limit, and not the cores
        workers = best.workers // 2
        around.append(replace(best, workers=workers, slots=slots_for(concurrency, workers)))
    return around


def least_bytes(candidate: Candidate, weights_bytes: int, kv_bytes_per_slot: int) -> int:
    """What its workers take at least, with the context that they will have."""
    kv_bytes = kv_bytes_per_slot * candidate.slots
    return candidate.workers * (weights_bytes + kv_bytes + _OVERHEAD_BYTES)


def kv_bytes_per_slot(footprint: Footprint) -> int:
    return footprint.kv_cache_bytes // footprint.slots
