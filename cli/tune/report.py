"""How a decision is told to people, and written down: a table, a sentence, JSON."""

from typing import Any

from rich.table import Table

from cli.tune.candidates import Candidate
from cli.tune.decision import Decision, Row
from cli.tune.measures import Measure
from cli.tune.search import Search


def expectation(search: Search) -> str:
    """Said before anything is tried."""
    num_candidates = len({search.default, *search.candidates, search.single})
    words = f"{num_candidates} candidates"
    makes = sorted(
        name for name in {c.weight_format for c in search.candidates} if search.making_s(name)
    )
    if makes:
        words += f"; {', '.join(makes)} to be made first, in about {search.planned_making_s:.0f} s"
    words += f"; about {search.planned_s:.0f} s in all, and the budget is {search.budget_s:.0f} s"
    if search.planned_s > search.budget_s:
        words += ": what has no time is left out"
    return words


def make_table(decision: Decision) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("candidate")
    for name in ("out tok/s", "± %", "n", "prompt tok/s", "TTFT p50/p99 ms", "ITL p50/p99 ms"):
        table.add_column(name, justify="right")
    table.add_column("MB (RSS)", justify="right")
    table.add_column("disturbed", justify="right")
    table.add_column("")
    for row in decision.rows:
        made = row.measure
        mark = (
            "*"
            if decision.chosen and row.measure.candidate == decision.chosen.measure.candidate
            else ""
        )
        remark = row.refusal or ("estimate" if not row.repeats else _remark(row, decision))
        table.add_row(
            mark,
            str(made.candidate),
            f"{made.output_tokens_per_s:.0f}",
            f"{row.spread * 100:.0f}" if row.repeats > 1 else "",
            str(row.repeats or "-"),
            f"{made.prompt_tokens_per_s:.0f}",
            f"{_ms(made.ttft_p50_ms)}/{_ms(made.ttft_p99_ms)}",
            f"{_ms(made.itl_p50_ms)}/{_ms(made.itl_p99_ms)}",
            f"{row.service_bytes / 1e6:.0f} ({made.rss_bytes / 1e6:.0f})",
            f"{made.delayed_share:.0%}",
            remark,
        )
    return table


def sentence(decision: Decision, default: Candidate, single: Candidate, objective: str) -> str:
    chosen = decision.chosen
    if chosen is None:
        return "Nothing could be chosen: " + (
            decision.rows[0].refusal if decision.rows else "nothing was measured"
        )
    words = f"Chosen for {objective}: {chosen.measure.candidate}"
    words += f" ({chosen.measure.output_tokens_per_s:.0f} tokens/s)"
    gains = []
    if chosen.measure.candidate == default:
        others = [row for row in decision.rows if row is not chosen and not row.refusal]
        told = "nothing else that was tried is clearly better"
        gains.append(f"that is the default, and {told if others else 'there was nothing else'}")
    elif decision.gain_over_default:
        gain = gain_words(decision.gain_over_default, objective)
        gains.append(f"{gain}the default ({default})")
    if decision.gain_over_single and chosen.measure.candidate != single:
        gain = gain_words(decision.gain_over_single, objective)
        gains.append(f"{gain}one process with all cores ({single})")
    return words + (": " + ", ".join(gains) if gains else "") + "."


def gain_words(gain: float, objective: str) -> str:
    """Of latency it is the geometric mean of both waits that is so much shorter, not the throughput."""
    return f"{gain:.2f} times " + ("" if objective == "throughput" else "as quick as ")


def to_json(decision: Decision) -> dict[str, Any]:
    chosen = decision.chosen
    return {
        "chosen": to_fields(chosen.measure.candidate) if chosen else None,
        "figures": figures(chosen.measure) if chosen else None,
        "gain_over_default": _rounded(decision.gain_over_default),
        "gain_over_single": _rounded(decision.gain_over_single),
        "noise": decision.noise,
        "pareto": [to_fields(candidate) for candidate in decision.pareto],
        "candidates": [
            {
                **to_fields(row.measure.candidate),
                **figures(row.measure),
                "service_bytes": row.service_bytes,
                "repeats": row.repeats,
                "spread": round(row.spread, 4),
                "refused": row.refusal,
            }
            for row in decision.rows
        ],
    }


def to_fields(candidate: Candidate) -> dict[str, Any]:
    return {
        "weight_format": candidate.weight_format,
        "workers": candidate.workers,
        "threads": candidate.threads,
        "slots": candidate.slots,
        "prefill_chunk_tokens": candidate.chunk_tokens,
    }


def figures(made: Measure) -> dict[str, float | None]:
    names = (
        *("output_tokens_per_s", "prompt_tokens_per_s", "ttft_p50_ms", "ttft_p99_ms"),
        *("itl_p50_ms", "itl_p99_ms", "memory_bytes", "rss_bytes", "delayed_share"),
        *("stolen_share", "prefill_tokens_per_s", "step_ms", "batch_invariant"),
    )
    return {name: _rounded(getattr(made, name)) for name in names}


def _remark(row: Row, decision: Decision) -> str:
    return "Pareto front" if row.measure.candidate in decision.pareto else ""


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value
