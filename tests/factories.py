"""Things that tests need often, with what does not matter filled in."""

from shared.protocol import GenerateRequest, JobArgs
from worker.backends.scripted import ScriptedBackend
from worker.engine import Engine
from worker.sequence import JobTimes


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


def make_engine(
    backend: ScriptedBackend, *, chunk_tokens: int = 8, budget_tokens: int = 16
) -> tuple[Engine, Clock]:
    clock = Clock()
    engine = Engine(
        backend,
        worker="worker-0",
        chunk_tokens=chunk_tokens,
        budget_tokens=budget_tokens,
        clock=clock,
    )
    return engine, clock
