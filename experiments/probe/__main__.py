"""``python -m experiments.probe``: reads its plan, loads the model, says what it is, then answers orders
until its input is closed."""

import logging
import re
import sys
from pathlib import Path
from time import monotonic

from experiments.probe.orders import Asked, ProbePlan, Ready
from shared.errors import ServiceError
from shared.exit_codes import EXIT_CONFIG
from worker.illegal_instruction import IllegalInstruction
from worker.leases import pin

_BUFFER = re.compile(r"load_tensors:\s+(\S+) model buffer size =\s+([0-9.]+) MiB")
_MB_PER_MIB = 1.048576


class _Buffers(logging.Handler):
    """Hears in what llama.cpp logs where it put the weights."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.mb: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        if found := _BUFFER.search(record.getMessage()):
            self.mb[found[1]] = self.mb.get(found[1], 0.0) + float(found[2]) * _MB_PER_MIB


def main() -> int:
    plan = ProbePlan.model_validate_json(sys.stdin.readline())
    pin(plan.cores)
    try:
        _serve(plan)
    except ServiceError as error:
        sys.stderr.write(error.message + "\n")
        return EXIT_CONFIG
    return 0


def _serve(plan: ProbePlan) -> None:
    illegal = IllegalInstruction("probe")
    illegal.install()
    # Only now: what llama.cpp's threads are pinned to is settled when its library is loaded.
    from experiments.probe.probe import Probe
    from worker.backends.library import is_built_with
    from worker.backends.llama import LlamaBackend

    illegal.name_features(is_built_with)
    buffers, log = _Buffers(), logging.getLogger("worker.backends.library")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    log.addHandler(buffers)
    began_s = monotonic()
    backend = LlamaBackend(
        Path(plan.model_path),
        slots=plan.slots,
        threads=plan.threads,
        context_tokens=plan.context_tokens,
        prefill_grid=plan.largest_chunk_tokens,
    )
    load_s = monotonic() - began_s
    try:
        ready = Ready(
            load_s=load_s,
            batch_invariant=backend.check_batch_invariance(plan.check_s) if plan.check_s else None,
            description=backend.facts.description,
            llama_cpp=backend.facts.llama_cpp,
            num_vocab=backend.facts.num_vocab,
            pads_from=backend.pads_from,
            kv_cache_bytes=backend.facts.kv_cache_bytes,
            buffers_mb=buffers.mb,
        )
        probe = Probe(backend, plan)
        _say(ready.model_dump_json())
        for line in sys.stdin:
            _say(probe.answer(Asked.model_validate_json(line).order).model_dump_json())
    finally:
        backend.close()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
