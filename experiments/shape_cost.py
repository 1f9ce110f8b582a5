"""What it costs to hold answers to a shape: the time of a step with free answers and with JSON.

All slots of one engine decode at once, first free, then held to a schema, in turn, several times, over
the same positions. The last line of the output is JSON.

    python -m experiments.shape_cost --slots 8 --rounds 5
"""

import argparse
import json
import statistics
import time
from typing import Any

from rich.table import Table

from cli.card import make_card, open_console
from experiments.prompts import make_prompt
from shared.cores import usable_cores
from shared.models import resolve_model
from shared.protocol import GenerateRequest, JobArgs
from shared.settings import load_settings
from worker.engine import Engine
from worker.leases import pin
from worker.pace import Pace
from worker.sequence import JobTimes

#: Of a step; the issue that brought shapes set it.
MOST_PERCENT = 15

_PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "email": {"type": "string", "pattern": "^[a-z]+@[a-z]+[.]com$"},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "kind": {"enum": ["friend", "colleague", "stranger"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 4},
    },
    "required": ["name", "email", "age", "kind", "tags"],
    "additionalProperties": False,
}


def _many(item: dict[str, Any]) -> dict[str, Any]:
    """More than fit, so that no answer ends within the steps."""
    schema = {"type": "array", "items": item, "minItems": 1000}
    return {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}


KINDS: dict[str, dict[str, Any]] = {
    "free": {"ignore_eos": True},
    "any objects": _many({"type": "object"}),
    "schema": _many(_PERSON),
}


def step_ms(engine: Engine, kind: str, slots: int, steps: int, seed: int) -> list[float]:
    """Of each step in which every slot decodes one token."""
    for slot in range(slots):
        body = {"prompt": make_prompt(slot), "max_tokens": steps + 1} | KINDS[kind]
        args = JobArgs(request=GenerateRequest.model_validate(body), seed=seed + slot)
        engine.admit(str(slot), 1, args, JobTimes(0, 0, time.monotonic()))
    while any(s.is_prefilling for s in engine.scheduler.sequences):
        engine.step()
    times = []
    while engine.num_active == slots:
        begin_s = time.perf_counter()
        engine.step()
        times.append((time.perf_counter() - begin_s) * 1000)
    while engine.num_active:
        engine.step()
    return times[1:-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=load_settings().model)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    console = open_console()
    card = make_card(options.model)
    pin([usable_cores().cores[0]])
    # Only now: what llama.cpp's threads are pinned to is settled when its library is loaded.
    from worker.backends.llama import LlamaBackend

    path = resolve_model(options.model, load_settings().model_dir).path
    backend = LlamaBackend(path, slots=options.slots, threads=1, context_tokens=1024)
    engine = Engine(backend, worker="bare", chunk_tokens=56, pace=Pace(0.5))
    medians: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for seed in range(options.rounds + 1):
        for kind in KINDS:
            times = step_ms(engine, kind, options.slots, options.steps, seed)
            if seed and times:  # the first round warms up
                medians[kind].append(statistics.median(times))
    free = statistics.median(medians["free"])
    table = Table("answers", "ms a step", "over free", "rounds")
    figures = {}
    for kind, values in medians.items():
        ratios = [ours / free_ms for ours, free_ms in zip(values, medians["free"], strict=True)]
        percent = (statistics.median(ratios) - 1) * 100
        figures[kind] = {
            "step_ms": round(statistics.median(values), 2),
            "over_free_percent": round(percent, 1),
        }
        rounds = ", ".join(f"{(ratio - 1) * 100:.1f} %" for ratio in ratios)
        table.add_row(kind, f"{statistics.median(values):.2f}", f"{percent:.1f} %", rounds)
    console.print(table)
    worst = max(figure["over_free_percent"] for figure in figures.values())
    verdict = "below" if worst < MOST_PERCENT else "ABOVE"
    console.print(
        f"{worst:.1f} % of a step of {free:.1f} ms, {verdict} the {MOST_PERCENT} % allowed"
    )
    print(json.dumps({"card": card, "slots": options.slots, "kinds": figures}))


if __name__ == "__main__":
    main()
