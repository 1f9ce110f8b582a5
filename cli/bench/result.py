"""What was measured, as JSON: the last line of the output, and result.json. Pure."""

from typing import Any

from cli.bench.measured import Measured
from cli.bench.plan import Plan, Point
from cli.bench.verdicts import judge


def to_json(measured: Measured, card: dict[str, object]) -> dict[str, Any]:
    """Figures have the names that `vllm bench serve` gives them; ``card`` is this client's machine."""
    return {
        "client": card,
        "plan": _plan(measured.plan),
        "servers": {
            server.name: {
                "url": server.shown_url,
                "model": measured.models.get(server.name),
                "ignore_eos": server.name not in measured.without_ignore_eos,
                "errors": _errors(measured.errors(server.name)),
            }
            for server in measured.plan.servers
        },
        "loads": [_load(measured, point) for point in measured.points],
        "notes": [verdict.text for verdict in judge(measured)],
        "is_interrupted": measured.is_interrupted,
    }


def _plan(plan: Plan) -> dict[str, Any]:
    lengths = plan.lengths
    objective = plan.objective
    return {
        "workload": plan.workload_name,
        "prompt_tokens": lengths.prompt_tokens or None,
        "output_tokens": lengths.output_tokens or None,
        "prefix_tokens": lengths.prefix_tokens or None,
        "turns": lengths.turns,
        "rounds": plan.rounds,
        "seed": plan.seed,
        "requests": plan.requests,
        "duration_s": plan.duration_s,
        "burstiness": plan.burstiness,
        "slo": objective and {n: v for n, v in objective.limits_s().items() if v is not None},
    }


def _load(measured: Measured, point: Point) -> dict[str, Any]:
    return {
        "label": point.label,
        "concurrency": point.clients,
        "request_rate": point.rate_per_s,
        "servers": {name: _of_server(measured, point, name) for name in measured.names},
        "ratios": measured.ratios(point),
    }


def _of_server(measured: Measured, point: Point, name: str) -> dict[str, Any]:
    return {
        "figures": measured.spreads(point, name),
        "rounds": [
            run.figures
            | {
                "round": run.round_number,
                "errors": _errors(run.errors),
                "is_interrupted": run.is_interrupted,
            }
            for run in measured.runs.get((point, name), [])
        ],
    }


def _errors(errors: dict[str, tuple[int, str]]) -> dict[str, int]:
    return {kind: count for kind, (count, _) in errors.items()}
