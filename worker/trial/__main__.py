"""``python -m worker.trial``: one worker of a candidate layout, measured.

Reads its plan as a JSON line, loads the model, writes ``ready``, waits for ``go`` (so that all workers of
a candidate begin together), and writes what it saw as a JSON line. It stays until its input is closed:
pages that workers share are to be counted while all of them are there.
"""

import sys
from pathlib import Path
from time import monotonic

from shared.errors import ServiceError
from shared.exit_codes import EXIT_CONFIG
from shared.trials import TrialPlan, TrialReport
from worker.illegal_instruction import IllegalInstruction
from worker.leases import pin
from worker.trial.clients import Clients, Observed
from worker.trial.cost import cost_so_far, memory_bytes


def main() -> int:
    plan = TrialPlan.model_validate_json(sys.stdin.readline())
    pin(plan.cores)
    try:
        report = _try(plan)
    except ServiceError as error:
        sys.stderr.write(error.message + "\n")
        return EXIT_CONFIG
    if report:
        _say(report.model_dump_json())
        sys.stdin.read()
    return 0


def _try(plan: TrialPlan) -> TrialReport | None:
    began_s = monotonic()
    illegal = IllegalInstruction("trial")
    illegal.install()
    # Only now: what llama.cpp's threads are pinned to is settled when its library is loaded.
    from worker.backends.library import is_built_with
    from worker.backends.llama import LlamaBackend
    from worker.engine import Engine
    from worker.pace import Pace

    illegal.name_features(is_built_with)
    backend = LlamaBackend(
        Path(plan.model_path),
        slots=plan.slots,
        threads=len(plan.cores),
        context_tokens=plan.context_tokens,
        weights_sharing=plan.weights_sharing,
    )
    try:
        invariant = backend.check_batch_invariance(plan.check_s) if plan.check_s else None
        load_s = monotonic() - began_s
        pace = Pace(plan.stall_ms / 1000)
        engine = Engine(backend, worker="trial", chunk_tokens=plan.chunk_tokens, pace=pace)
        clients = Clients(
            engine,
            num_clients=plan.clients,
            num_vocab=backend.facts.num_vocab,
            shapes=plan.shapes,
            chunk_tokens=plan.chunk_tokens,
            seed=plan.seed,
            is_short=plan.is_short,
            clock=monotonic,
        )
        _say("ready")
        if sys.stdin.readline().strip() != "go":
            return None
        before, go_s = cost_so_far(plan.cores), monotonic()
        if plan.clients:
            seen = clients.run(plan.window_s, plan.max_warmup_s)
        else:
            seen = Observed(go_s, go_s, [], [], [], 0)
        cost = cost_so_far(plan.cores).since(before)
        rss_bytes, pss_bytes = memory_bytes()
        return TrialReport(
            load_s=load_s,
            batch_invariant=invariant,
            begin_s=seen.begin_s,
            end_s=seen.end_s,
            steps=tuple(seen.steps),
            ttft_ms=tuple(round(ms, 3) for ms in seen.ttft_ms),
            itl_ms=tuple(round(ms, 3) for ms in seen.itl_ms),
            requests=seen.requests,
            slots=plan.slots,
            clients=plan.clients,
            kv_cache_bytes=backend.facts.kv_cache_bytes,
            rss_bytes=rss_bytes,
            pss_bytes=pss_bytes,
            cpu_s=cost.cpu_s,
            delayed_s=cost.delayed_s,
            involuntary_switches=cost.involuntary_switches,
            stolen_s=cost.stolen_s,
            threads=len(plan.cores),
        )
    finally:
        backend.close()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
