"""What a request has to keep to count as good (``--slo ttft:500ms,itl:100ms``). Pure."""

from dataclasses import asdict, dataclass

from cli.bench.answers import Answer
from cli.durations import parse_duration_s
from shared.errors import BadRequest

#: ``itl`` holds for each gap of a request, so the longest one counts.
NAMES = ("ttft", "tpot", "itl", "e2e")
_MAX_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Objective:
    """Limits in seconds; None: any."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    itl_s: float | None = None
    e2e_s: float | None = None

    def limits_s(self) -> dict[str, float | None]:
        return asdict(self)

    def is_kept(self, answer: Answer) -> bool:
        """By a request that was answered. Of one token there is no TPOT, which counts as 0, as in vLLM."""
        if not answer.is_good:
            return False
        values = (
            (self.ttft_s, answer.e2e_s if answer.ttft_s is None else answer.ttft_s),
            (self.tpot_s, answer.tpot_s or 0.0),
            (self.itl_s, max(answer.gaps_s, default=0.0)),
            (self.e2e_s, answer.e2e_s),
        )
        return all(limit is None or value <= limit for limit, value in values)


def parse_objective(text: str) -> Objective:
    """Raises ``BadRequest`` that names the part."""
    limits_s: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition(":")
        if name not in NAMES:
            raise _refused(f"no objective is called {name[:40]!r}; there are {', '.join(NAMES)}")
        if name in limits_s:
            raise _refused(f"{name} is given twice")
        limits_s[name] = _parse_limit_s(name, value.strip())
    return Objective(**{f"{name}_s": limit for name, limit in limits_s.items()})


def _parse_limit_s(name: str, text: str) -> float:
    is_ms = text.endswith("ms")
    try:
        limit_s = parse_duration_s(text[:-2] if is_ms else text) / (1000 if is_ms else 1)
    except ValueError:
        raise _refused(f"{name}: must be like 500ms or 1.5s (got {text[:40]!r})") from None
    if not 0 < limit_s <= _MAX_S:
        raise _refused(f"{name}: must be more than 0 and at most 1d (got {text!r})")
    return limit_s


def _refused(what: str) -> BadRequest:
    return BadRequest(f"--slo: {what}", field="slo")
