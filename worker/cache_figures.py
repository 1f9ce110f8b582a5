"""What a worker counts of its snapshots: the engine adds, the heartbeat carries it. Pure."""

from dataclasses import dataclass

#: What is summed over workers and their deaths; the fields of ``shared.metrics.Totals`` of these names.
COUNTED = (
    "cache_queries",
    "cache_hits",
    "cache_query_tokens",
    "cache_hit_tokens",
    "cache_restore_us",
    "cache_saved_ms",
    "snapshots_written",
    "snapshot_bytes_written",
    "snapshots_evicted",
    "snapshots_refused",
    "preemptions",
    "parked",
    "resumed_tokens",
)


@dataclass(slots=True)
class CacheFigures:
    """Counters since this process began, which only grow, and three gauges.

    The engine's thread writes and the heart's reads: each figure is one number, so what is read is at
    worst a moment old."""

    cache_queries: int = 0  #: jobs looked up
    cache_hits: int = 0  #: jobs that started from a snapshot
    cache_query_tokens: int = 0  #: prompt tokens looked up
    cache_hit_tokens: int = 0  #: prompt tokens that were not computed
    cache_restore_us: float = 0
    cache_saved_ms: float = 0  #: estimated: hit tokens over the measured prefill rate
    snapshots_written: int = 0
    snapshot_bytes_written: int = 0
    snapshots_evicted: int = 0
    snapshots_refused: int = 0  #: there was no room, or the writer was behind
    preemptions: int = 0
    parked: int = 0  #: sequences that left their slot with their state
    resumed_tokens: int = 0  #: of parked or killed jobs, restored instead of computed

    snapshot_bytes: int = 0  #: gauge, of the host's directory
    num_snapshots: int = 0  #: gauge, of the host's directory
    prefill_tokens_per_s: float = 0  #: gauge, measured; 0: not yet

    def count_look_up(self, *, prompt_tokens: int) -> None:
        self.cache_queries += 1
        self.cache_query_tokens += prompt_tokens

    def count_hit(self, *, hit_tokens: int, restore_s: float) -> None:
        """To be called after ``prefill_tokens_per_s`` is as current as it can be."""
        self.cache_hits += 1
        self.cache_hit_tokens += hit_tokens
        self.cache_restore_us += restore_s * 1e6
        if self.prefill_tokens_per_s > 0:
            self.cache_saved_ms += hit_tokens * 1000 / self.prefill_tokens_per_s

    def totals(self) -> dict[str, int]:
        return {name: int(getattr(self, name)) for name in COUNTED}
