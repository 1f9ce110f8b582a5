"""All that was heard of a service so far: its newest view, its last hour, and whether it answers now.
Pure: each piece of news makes a new picture."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

MAX_POINTS = 360
#: What matters of throttling is how much there was of it of late; workers count from their start.
_WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class News:
    """``kind`` as the feed has it, or ``away`` with the problem in words."""

    kind: str
    payload: Any


@dataclass(frozen=True, slots=True)
class Sample:
    at: float
    periods: int
    throttled: int


@dataclass(frozen=True, slots=True)
class Picture:
    view: Mapping[str, Any] | None = None
    points: tuple[Mapping[str, Any], ...] | None = None  #: oldest first
    problem: str = ""  #: why there is no news
    heard_s: float = 0.0  #: when the last view came, by the clock of who looks
    samples: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return self.view is not None and self.points is not None

    @property
    def throttled(self) -> dict[str, float]:
        """Incarnation of a worker -> share of the periods of its CPU quota, of the last minute."""
        return {name: _share(samples) for name, samples in self.samples.items()}

    def with_news(self, news: News, now_s: float) -> "Picture":
        """What it does not know changes nothing: a newer gateway may say more."""
        if news.kind == "away":
            return replace(self, problem=str(news.payload))
        if news.kind == "history":
            return replace(self, points=tuple(news.payload["points"][-MAX_POINTS:]), problem="")
        if news.kind == "point":
            points = (*(self.points or ()), news.payload)[-MAX_POINTS:]
            return replace(self, points=points, problem="")
        if news.kind == "view":
            view = news.payload
            samples = _with_samples(self.samples, view)
            return replace(self, view=view, problem="", heard_s=now_s, samples=samples)
        return self


def _with_samples(
    samples: Mapping[str, tuple[Sample, ...]], view: Mapping[str, Any]
) -> dict[str, tuple[Sample, ...]]:
    at, found = view["at"], {}
    for worker in view["workers"] or ():
        name = worker["incarnation"]
        sample = Sample(at, worker.get("cpu_periods", 0), worker.get("throttled_periods", 0))
        kept = [*samples.get(name, ()), sample]
        while len(kept) > 2 and kept[1].at < at - _WINDOW_S:
            del kept[0]
        found[name] = tuple(kept)
    return found


def _share(samples: tuple[Sample, ...]) -> float:
    num_periods = samples[-1].periods - samples[0].periods
    return (samples[-1].throttled - samples[0].throttled) / num_periods if num_periods > 0 else 0.0
