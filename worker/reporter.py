"""What a worker says of itself: fixed facts, and what is measured anew for each report."""

from collections import deque
from collections.abc import Callable
from time import monotonic

import psutil

from shared.cores import num_periods
from shared.protocol import WorkerReport
from worker.cache_figures import CacheFigures
from worker.step_figures import StepFigures

#: Over how long the speed of a worker is averaged.
_SPEED_WINDOW_S = 10.0
#: Reading the memory maps of a large process takes milliseconds.
_MEMORY_INTERVAL_S = 5.0


class Reporter:
    """``facts`` are replaced as the worker goes from waiting to loading to ready."""

    def __init__(self, facts: WorkerReport, clock: Callable[[], float] = monotonic) -> None:
        self.facts = facts
        self.num_generated: Callable[[], int] = lambda: 0
        self.num_active: Callable[[], int] = lambda: 0
        self.num_kv_tokens: Callable[[], int] = lambda: 0
        self.weights_bytes = 0  #: what one call of the model reads
        self.cache = CacheFigures()
        self.steps = StepFigures(facts.model)
        #: Brings ``cache`` up to date, before each report and what is counted. In the heart's thread.
        self.refresh_cache: Callable[[], None] = lambda: None
        self._clock = clock
        self._process = psutil.Process()
        self._process.cpu_percent()
        self._samples: deque[tuple[float, int, int]] = deque()
        self._memory_mb = 0.0
        self._memory_at_s = float("-inf")

    def update(self, **changes: object) -> None:
        self.facts = self.facts.model_copy(update=changes)

    def report(self) -> WorkerReport:
        now_s = self._clock()
        self.refresh_cache()
        if now_s - self._memory_at_s >= _MEMORY_INTERVAL_S:
            self._memory_mb = self.memory_mb()
            self._memory_at_s = now_s
        tokens_per_s, calls_per_s = self._speeds(now_s)
        cells = self.facts.slots * self.facts.context_tokens
        kv_tokens = self.num_kv_tokens()
        throttled, periods = num_periods() or (0, 0)
        return self.facts.model_copy(
            update={
                "slots_used": self.num_active(),
                "tokens_per_s": round(tokens_per_s, 1),
                "kv_tokens_used": kv_tokens,
                "kv_usage": round(kv_tokens / cells, 4) if cells else 0.0,
                "read_gb_per_s": round(calls_per_s * self.weights_bytes / 1e9, 3),
                "throttled_periods": throttled,
                "cpu_periods": periods,
                "prefill_tokens_per_s": round(self.cache.prefill_tokens_per_s, 1),
                "num_snapshots": self.cache.num_snapshots,
                "snapshot_bytes": self.cache.snapshot_bytes,
                "memory_mb": self._memory_mb,
                "cpu_percent": self._process.cpu_percent(),
            }
        )

    def memory_mb(self) -> float:
        """PSS: pages of the model that workers share count once in the sum."""
        return round(self._process.memory_full_info().pss / 1e6, 1)

    def totals(self) -> dict[str, int]:
        """What nobody else counts, by its names in the hash of totals."""
        return self.cache.totals() | self.steps.totals()

    def _speeds(self, now_s: float) -> tuple[float, float]:
        """Tokens and calls of the model a second."""
        self._samples.append((now_s, self.num_generated(), self.steps.num_calls))
        while now_s - self._samples[0][0] > _SPEED_WINDOW_S:
            self._samples.popleft()
        (then_s, *before), (_, *after) = self._samples[0], self._samples[-1]
        if now_s <= then_s:
            return 0.0, 0.0
        tokens, calls = (b - a for a, b in zip(before, after, strict=True))
        return tokens / (now_s - then_s), calls / (now_s - then_s)
