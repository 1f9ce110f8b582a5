"""What was measured, round by round, and what the rounds say together. Pure."""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

#: What one measurement was of, as ``{"threads": 2, "neighbour": "none"}``.
Case = dict[str, str | int]
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Spread:
    median: float
    least: float
    most: float
    rounds: int

    @property
    def share(self) -> float:
        """How far the rounds lie apart, of the median."""
        return (self.most - self.least) / self.median if self.median else 0.0

    def to_json(self) -> dict[str, float]:
        rounded = {n: float(f"{getattr(self, n):.5g}") for n in ("median", "least", "most")}
        return rounded | {"rounds": self.rounds}


@dataclass(frozen=True, slots=True)
class Sample:
    case: Case
    round_number: int
    values: Values


@dataclass(slots=True)
class Samples:
    kept: list[Sample] = field(default_factory=list)
    #: What holds for all of them: facts of the model as loaded, say.
    facts: dict[str, Any] = field(default_factory=dict)

    def add(self, case: Case, round_number: int, values: Values) -> None:
        self.kept.append(Sample(dict(case), round_number, values))

    def of(self, **wanted: str | int) -> list[Sample]:
        return [s for s in self.kept if all(s.case.get(n) == v for n, v in wanted.items())]

    def values(self, name: str, **wanted: str | int) -> list[Any]:
        return [s.values[name] for s in self.of(**wanted) if s.values.get(name) is not None]

    def spread(self, name: str, **wanted: str | int) -> Spread | None:
        values = self.values(name, **wanted)
        if not values:
            return None
        return Spread(statistics.median(values), min(values), max(values), len(values))

    def median(self, name: str, **wanted: str | int) -> float | None:
        spread = self.spread(name, **wanted)
        return spread.median if spread else None

    def settings(self, name: str) -> list[Any]:
        """What this part of the cases was, in order."""
        return list(dict.fromkeys(s.case[name] for s in self.kept if name in s.case))

    def spreads(self) -> Iterator[tuple[Case, str, Spread]]:
        """Of each figure of each case."""
        cases = {tuple(s.case.items()): s.case for s in self.kept}
        for case in cases.values():
            names = {n for s in self.of(**case) for n, v in s.values.items() if _is_number(v)}
            for name in sorted(names):
                if spread := self.spread(name, **case):
                    yield case, name, spread

    def to_json(self) -> dict[str, Any]:
        kept = [
            {"case": s.case, "round": s.round_number, "values": _rounded(s.values)}
            for s in self.kept
        ]
        return {"facts": self.facts, "kept": kept}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> "Samples":
        kept = [Sample(s["case"], s["round"], s["values"]) for s in saved["kept"]]
        return cls(kept, dict(saved["facts"]))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _rounded(values: Any) -> Any:
    if isinstance(values, float):
        return float(f"{values:.5g}")
    if isinstance(values, list | tuple):
        return [_rounded(value) for value in values]
    if isinstance(values, dict):
        return {name: _rounded(value) for name, value in values.items()}
    return values
