"""Trials as the tuner makes them: all workers of a layout at once, under a closed loop of clients."""

import time

from cli.tune.candidates import Candidate, layouts, slots_for
from cli.tune.runner import TrialFailed
from cli.tune.trials import Load, TrialBench
from experiments.frame.neighbour import NEIGHBOURS, neighbour
from experiments.frame.rounds import in_turn
from experiments.frame.samples import Case, Samples, Values
from experiments.frame.setting import Setting
from experiments.frame.watch import Watch
from shared.errors import BadRequest, SetupError
from shared.trials import RequestShape
from shared.weight_formats import AS_IS

_CLIENTS = 16
_QUICK_CLIENTS = 8
_MAX_CLIENTS = 256
_PROMPT_TOKENS = 32
_OUTPUT_TOKENS = 32
_WINDOW_S = 5.0
_QUICK_WINDOW_S = 1.5
_TRIAL_LIMIT_S = 120.0
_CONTEXT_TOKENS = 256


def clients_of(setting: Setting) -> int:
    return setting.choose((_CLIENTS,), (_QUICK_CLIENTS,))[-1]


def candidates_of(setting: Setting) -> list[Candidate]:
    clients = clients_of(setting)
    return [
        Candidate(AS_IS, workers, threads, slots_for(clients, workers))
        for workers, threads in layouts(len(setting.machine.cores))
    ]


def check(setting: Setting) -> None:
    if clients_of(setting) > _MAX_CLIENTS:
        raise BadRequest(
            f"--clients: {clients_of(setting)} is more than {_MAX_CLIENTS}", field="--clients"
        )
    if len(setting.machine.cores) < 2:
        raise SetupError("there is one core for us: with one there is one layout only")
    setting.check_context("the requests of layouts", _CONTEXT_TOKENS)
    for candidate in candidates_of(setting):
        setting.check_memory(
            slots=candidate.slots, context_tokens=_CONTEXT_TOKENS, processes=candidate.workers
        )


def measure(setting: Setting, samples: Samples, watch: Watch) -> None:
    candidates = {f"{c.workers} x {c.threads}": c for c in candidates_of(setting)}
    shape = RequestShape(prompt_tokens=_PROMPT_TOKENS, output_tokens=_OUTPUT_TOKENS)
    bench = TrialBench(
        files={AS_IS: setting.model.path},
        load=Load(clients_of(setting), (shape,)),
        machine=setting.machine,
        stall_ms=setting.settings.prefill_stall_ms,
        weights_sharing=setting.settings.weights_sharing,
        window_s=_QUICK_WINDOW_S if setting.is_quick else _WINDOW_S,
        max_context_tokens=setting.facts.context_tokens,
    )
    samples.facts |= {
        "clients": clients_of(setting),
        "cores": len(setting.machine.cores),
        "prompt_tokens": _PROMPT_TOKENS,
        "output_tokens": _OUTPUT_TOKENS,
    }

    def run(case: Case) -> Values:
        candidate = candidates[str(case["layout"])]
        with neighbour(str(case["neighbour"]), setting.cores_for(1)[0]):
            try:
                made = bench.try_out(
                    candidate,
                    is_short=False,
                    checks=False,
                    deadline_s=time.monotonic() + _TRIAL_LIMIT_S,
                )
            except TrialFailed as error:
                watch.say(f"{case['layout']}, neighbour {case['neighbour']}: {error.message}")
                return {}
        values: Values = {
            "output_tokens_per_s": made.output_tokens_per_s,
            "ttft_p50_ms": made.ttft_p50_ms,
            "itl_p50_ms": made.itl_p50_ms,
            "itl_p99_ms": made.itl_p99_ms,
            "memory_mb": made.memory_bytes / 1e6,
        }
        return values | (
            {"delayed_share": made.delayed_share} if case["neighbour"] == "none" else {}
        )

    cases: list[Case] = [
        {"layout": name, "neighbour": kind} for kind in NEIGHBOURS for name in candidates
    ]
    in_turn(samples, cases, setting.rounds, run, watch)
