"""Memory and processor time of this process, for the metrics."""

import threading
import time

import psutil

#: A shorter stretch would say little about the processor.
_MIN_STRETCH_S = 1.0


class Vitals:
    """Blocking: reading PSS walks the page tables."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._lock = threading.Lock()
        self._cpu_percent = 0.0
        self._process.cpu_percent(None)
        self._sampled_s = time.monotonic()

    def cpu_percent(self) -> float:
        """Of one core, since the sample before."""
        with self._lock:
            if time.monotonic() - self._sampled_s >= _MIN_STRETCH_S:
                self._cpu_percent = self._process.cpu_percent(None)
                self._sampled_s = time.monotonic()
            return self._cpu_percent

    def memory_mb(self) -> float:
        """PSS where the kernel tells it, so that shared pages count once over all processes."""
        memory = self._process.memory_full_info()
        return float(getattr(memory, "pss", 0) or memory.rss) / 1e6
