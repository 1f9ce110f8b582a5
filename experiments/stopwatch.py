"""Where the time of an engine's step goes: peers of its parts that tell a watch how long they took."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import ParamSpec, TypeVar

from experiments.played_model import PlayedModel
from worker.backends.base import Row
from worker.detokenizer import Detokenizer, Released
from worker.scheduler import Outcome, Scheduler, StepPlan
from worker.sequence import Drawn

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Stopwatch:
    """Seconds by part. Of calls within one another, what the inner one takes is not the outer's."""

    def __init__(self) -> None:
        self.spent_s: dict[str, float] = defaultdict(float)
        self._inner_s = 0.0

    def time(self, part: str, call: Callable[_P, _T], *args: _P.args, **options: _P.kwargs) -> _T:
        before_s, self._inner_s = self._inner_s, 0.0
        begin_s = perf_counter()
        result = call(*args, **options)
        took_s = perf_counter() - begin_s
        self.spent_s[part] += took_s - self._inner_s
        self._inner_s = before_s + took_s
        return result


class TimedModel(PlayedModel):
    def __init__(self, watch: Stopwatch, *, slots: int, context_tokens: int) -> None:
        super().__init__(slots=slots, context_tokens=context_tokens)
        self._watch = watch

    def decode(self, rows: Sequence[Row], indices: Sequence[int]) -> list[int]:
        return self._watch.time("model", super().decode, rows, indices)


class TimedScheduler(Scheduler):
    def __init__(
        self, watch: Stopwatch, *, slots: int, context_tokens: int, chunk_tokens: int
    ) -> None:
        super().__init__(slots=slots, context_tokens=context_tokens, chunk_tokens=chunk_tokens)
        self._watch = watch

    def plan(self, budget_tokens: int, call_tokens: int = 0) -> StepPlan:
        return self._watch.time("plan", super().plan, budget_tokens, call_tokens)

    def commit(self, plan: StepPlan, drawn: Sequence[Drawn], now_s: float) -> Outcome:
        return self._watch.time("commit", super().commit, plan, drawn, now_s)


class TimedDetokenizer(Detokenizer):
    def __init__(self, watch: Stopwatch, stops: Sequence[str] = ()) -> None:
        super().__init__(stops)
        self._watch = watch

    def feed(self, token: int, piece: bytes) -> Released | None:
        return self._watch.time("detokenize", super().feed, token, piece)
