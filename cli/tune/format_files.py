"""The files of a model by weight format: those that are there, and how long the others take to make."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cli.convert import convert
from cli.tune.formats import size_bytes
from cli.tune.runner import TrialFailed
from shared.converted import converted_path
from shared.gguf_header import ModelFacts
from shared.weight_formats import AS_IS

#: Until one was made; upcasts were seen to take 6 s for a GB on two cores, K-quants three times as long.
_GUESSED_S_PER_BYTE = 1e-8


@dataclass(slots=True)
class FormatFiles:
    source: Path
    facts: ModelFacts
    model_dir: Path
    convert: Callable[..., Path] = convert
    clock: Callable[[], float] = time.monotonic
    paths: dict[str, Path] = field(default_factory=dict)
    _seen_s_per_byte: list[float] = field(default_factory=list)

    def find(self, formats: Iterable[str]) -> None:
        """Notes those that are there."""
        self.paths[AS_IS] = self.source
        for name in formats:
            if name != AS_IS:
                path = converted_path(self.source, name, self.model_dir)
                if path.is_file():
                    self.paths[name] = path

    def expected_s(self, weight_format: str) -> float:
        """To make it; 0 if it is there. As slow as the slowest that was made."""
        if weight_format in self.paths:
            return 0.0
        s_per_byte = max(self._seen_s_per_byte, default=_GUESSED_S_PER_BYTE)
        return size_bytes(self.facts, weight_format) * s_per_byte

    def make(self, weight_format: str, left_s: Callable[[], float]) -> None:
        """Unless it is there. Raises ``TrialFailed`` when no time is left, and what ``convert`` raises."""
        if weight_format in self.paths:
            return

        def look_at_clock(_done: int, _expected: int) -> None:
            if left_s() <= 0:
                raise TrialFailed(
                    f"converting to {weight_format} was not done when the time was over"
                )

        began_s = self.clock()
        path = self.convert(self.source, weight_format, self.model_dir, progress=look_at_clock)
        spent_s = self.clock() - began_s
        self._seen_s_per_byte.append(spent_s / max(1, size_bytes(self.facts, weight_format)))
        self.paths[weight_format] = path
