"""Things that tests need often, with what does not matter filled in."""

from shared.cache_scopes import Sharing
from shared.protocol import GenerateRequest, JobArgs
from worker.backends.scripted import ScriptedBackend
from worker.cache_figures import CacheFigures
from worker.engine import Engine
from worker.pace import Pace
from worker.prefix_cache import PrefixCache
from worker.reuse import Rules
from worker.sequence import JobTimes
from worker.snapshots.shelf import Shelf
from worker.step_figures import StepFigures


class Clock:
    """Time that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def make_args(prompt: str = "hello", *, seed: int = 1, **fields: object) -> JobArgs:
    request = GenerateRequest.model_validate({"prompt": prompt, "raw": True} | fields)
    return JobArgs(request=request, seed=seed)


def make_times(began_s: float = 100.0) -> JobTimes:
    return JobTimes(queued_s=0.5, before_attempt_s=0.5, began_s=began_s)


class FixedPace(Pace):
    """The same budget for every step, whatever was measured."""

    def __init__(self, budget_tokens: int) -> None:
        super().__init__(0.1)
        self._budget_tokens = budget_tokens

    def budget_tokens(self, *, holds_up: bool) -> int:
        return self._budget_tokens


def make_engine(
    backend: ScriptedBackend,
    *,
    chunk_tokens: int = 8,
    budget_tokens: int = 16,
    grid_tokens: int = 0,
    shelf: Shelf | None = None,
    min_tokens: int = 16,
    sharing: Sharing = "key",
    checkpoint_s: float = 1e9,
    has_cache: bool = True,
    step_figures: StepFigures | None = None,
) -> tuple[Engine, Clock]:
    clock = Clock()
    pace, figures = FixedPace(budget_tokens), CacheFigures()
    rules = Rules(backend.facts.window_tokens, grid_tokens, min_tokens)
    cache = PrefixCache(
        backend,
        rules,
        pace,
        figures,
        shelf=shelf,
        sharing=sharing,
        checkpoint_s=checkpoint_s,
        clock=clock,
    )
    engine = Engine(
        backend,
        worker="worker-0",
        chunk_tokens=chunk_tokens,
        grid_tokens=grid_tokens,
        pace=pace,
        cache=cache if has_cache else None,
        figures=figures,
        step_figures=step_figures,
        clock=clock,
    )
    return engine, clock
