"""What bounds a step: the bytes that it reads, or what it computes. Pure."""

from dataclasses import dataclass

from experiments.analysis.work import ModelWork


@dataclass(frozen=True, slots=True)
class Roofline:
    bytes_per_s: float
    flops_per_s: float

    def memory_s(self, work: ModelWork, rows: int, position: int) -> float:
        return work.step_bytes(rows, position) / self.bytes_per_s

    def compute_s(self, work: ModelWork, rows: int, position: int) -> float:
        return work.step_flops(rows, position) / self.flops_per_s

    def step_s(self, work: ModelWork, rows: int, position: int) -> float:
        """No step is faster."""
        return max(self.memory_s(work, rows, position), self.compute_s(work, rows, position))

    def knee_rows(self, work: ModelWork, position: int) -> float | None:
        """Sequences at which both take as long; None if the memory bounds any number of them, as it
        does where the KV cache of a row takes longer to read than the row to compute."""
        fixed_s = work.weight_bytes / self.bytes_per_s
        kv_s = self.memory_s(work, 1, position) - fixed_s
        row_s = self.compute_s(work, 1, position)
        return fixed_s / (row_s - kv_s) if row_s > kv_s else None


def bandwidth_percent(num_bytes: float, spent_s: float, read_gb_per_s: float) -> float:
    """Of the measured read bandwidth, what a step makes use of."""
    return num_bytes / spent_s / 1e9 / read_gb_per_s * 100
