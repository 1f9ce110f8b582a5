"""A probe as an experiment has it: a child process with a model in it."""

import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from cli.line_process import LineProcess
from experiments.probe.orders import Answer, Asked, Order, ProbePlan, Ready
from shared.errors import ServiceError

_LOAD_LIMIT_S = 300.0
_ANSWER_LIMIT_S = 900.0


class ProbeFailed(ServiceError):
    """A probe gave no figures."""

    code = "probe_failed"


class Probe:
    """In a ``with``. Raises ``ProbeFailed``."""

    def __init__(
        self,
        model_path: Path,
        cores: Sequence[int],
        *,
        threads: int | None = None,
        slots: int = 1,
        context_tokens: int,
        largest_chunk_tokens: int = 56,
        check_s: float = 0,
    ) -> None:
        self._plan = ProbePlan(
            model_path=str(model_path),
            cores=tuple(cores),
            threads=threads or len(cores),
            slots=slots,
            context_tokens=context_tokens,
            largest_chunk_tokens=largest_chunk_tokens,
            check_s=check_s,
        )

    @property
    def threads(self) -> int:
        return self._plan.threads

    def __enter__(self) -> "Probe":
        self._process = LineProcess("experiments.probe", error=ProbeFailed)
        try:
            self._process.send(self._plan.model_dump_json())
            line = self._process.line(time.monotonic() + _LOAD_LIMIT_S)
            self.ready = Ready.model_validate_json(line)
        except BaseException:
            self._process.end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.end()

    def ask(self, order: Order) -> Answer:
        self._process.send(Asked(order=order).model_dump_json())
        return Answer.model_validate_json(self._process.line(time.monotonic() + _ANSWER_LIMIT_S))
