"""Where a step turns from waiting for memory to computing: as measured, and as the roofline says. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.analysis.fit import fit_polynomial
from experiments.analysis.roofline import Roofline
from experiments.analysis.work import ModelWork
from experiments.frame.samples import Samples
from experiments.frame.study import Figures, Table, TooLittle

#: Of a prompt: each gives the logits of its last row.
_CHUNK = 56

#: One tells nothing of what more sequences cost.
LEAST_POINTS = 2
#: A row that adds less of a step cannot be told from none.
_NO_COST = 1e-6


def judge(samples: Samples, card: Mapping[str, Any]) -> Figures:
    if len(samples.settings("sequences")) < LEAST_POINTS:
        raise TooLittle("two numbers of sequences must be measured")
    work = ModelWork(**samples.facts["work"])
    position = int(samples.facts["position"])
    rows = []
    for count in sorted(samples.settings("sequences")):
        speed = samples.spread("tokens_per_s", sequences=count)
        step = samples.spread("step_ms", sequences=count)
        assert speed and step, "each sample of a step has both"
        rows.append(
            {
                "sequences": count,
                "tokens_per_s": speed.to_json(),
                "step_ms": step.to_json(),
                "gflop_per_s": work.step_flops(count, position) / step.median / 1e6,
                "gb_per_s": work.step_bytes(count, position) / step.median / 1e6,
            }
        )
    roofline = Roofline(
        bytes_per_s=float(card["read_gb_per_s"][str(samples.facts["threads"])]) * 1e9,
        flops_per_s=max(_peak(samples, work), *(row["gflop_per_s"] for row in rows)) * 1e9,
    )
    for row in rows:
        row["bound_ms"] = roofline.step_s(work, row["sequences"], position) * 1000
        row["memory_ms"] = roofline.memory_s(work, row["sequences"], position) * 1000
    figures: Figures = {
        "rows": rows,
        "read_gb_per_s": roofline.bytes_per_s / 1e9,
        "peak_gflop_per_s": roofline.flops_per_s / 1e9,
        "roofline_knee": roofline.knee_rows(work, position),
        "best_gain": max(r["tokens_per_s"]["median"] for r in rows)
        / rows[0]["tokens_per_s"]["median"],
        "position": position,
        "pads": bool(samples.facts.get("pads")),
    }
    if line := step_line([(r["sequences"], r["step_ms"]["median"]) for r in rows]):
        figures["line"] = line
    return figures


def _peak(samples: Samples, work: ModelWork) -> float:
    """What the kernels of this format reach at best here, in GFLOP/s: in whole chunks of a "
    "prompt."""
    rate = samples.median("prompt_tokens_per_s", kind="prompt")
    if not rate:
        return 0.0
    tokens = int(samples.values("tokens", kind="prompt")[0])
    return work.flops(0, tokens, outputs=tokens // _CHUNK) / tokens * rate / 1e9


def step_line(points: Sequence[tuple[int, float]]) -> Figures | None:
    """A step is what it takes however many rows it has, and so much for each of them: where both are the
    same is the measured knee. None of too few points, or where rows cost nothing."""
    if len(points) < 4:
        return None
    fit = fit_polynomial([x for x, _ in points], [y for _, y in points], 1)
    fixed_ms, row_ms = fit.coefficients
    if row_ms <= fixed_ms * _NO_COST:
        return None
    return {
        "fixed_ms": fixed_ms,
        "row_ms": row_ms,
        "knee": max(0.0, fixed_ms / row_ms),
        "r2": fit.r2,
    }


def takeaway(figures: Figures) -> str:
    rows = figures["rows"]
    last = rows[-1]
    return (
        f"{last['sequences']} sequences give "
        f"{last['tokens_per_s']['median'] / rows[0]['tokens_per_s']['median']:.1f} "
        f"times the tokens/s of {rows[0]['sequences']}, and each waits "
        f"{last['step_ms']['median'] / rows[0]['step_ms']['median']:.1f} times as long for its "
        f"next token"
    )


def tabulate(figures: Figures) -> Table:
    rows = [
        (
            str(row["sequences"]),
            f"{row['tokens_per_s']['median']:.1f}",
            f"{row['step_ms']['median']:.1f}",
            f"{row['step_ms']['least']:.1f}-{row['step_ms']['most']:.1f}",
            f"{row['bound_ms']:.1f}",
            "memory" if row["memory_ms"] >= row["bound_ms"] else "computing",
            f"{row['gflop_per_s']:.1f}",
            f"{row['gb_per_s']:.1f}",
        )
        for row in figures["rows"]
    ]
    columns = (
        "sequences",
        "tokens/s",
        "step, ms",
        "rounds",
        "roofline, ms",
        "bound by",
        "GFLOP/s",
        "GB/s",
    )
    return Table(columns, tuple(rows))


def explain(figures: Figures, _card: Mapping[str, Any]) -> str:
    rows = figures["rows"]
    first = rows[0]
    read, peak = figures["read_gb_per_s"], figures["peak_gflop_per_s"]
    words = (
        f"{takeaway(figures)}. A step reads the weights once for all rows. With {read:.1f} GB/s "
        f"of memory and "
        f"the {peak:.0f} GFLOP/s that this format's kernels reach at best here, "
    )
    knee = figures["roofline_knee"]
    if knee is None:
        words += "the memory would bound a step of any number of sequences. "
    elif knee < 1.5:
        words += (
            f"the roofline has its knee at {knee:.1f} sequences: already one is bound by "
            f"computing, so that "
            "batching can only win what a lone row wastes. "
        )
    else:
        words += (
            f"the roofline has its knee at {knee:.1f} sequences: up to there more of them are "
            f"nearly free, from "
            "there on each costs its own computing. "
        )
    if "line" in figures:
        line = figures["line"]
        words += (
            f"Measured, a step takes {line['fixed_ms']:.1f} ms and {line['row_ms']:.2f} ms for "
            f"each row (R² "
            f"{line['r2']:.3f}): the fixed part is as much as {line['knee']:.1f} rows. "
        )
    words += (
        f"The step of {first['sequences']} takes "
        f"{first['step_ms']['median'] / first['bound_ms']:.1f} times its "
        f"bound, that of {rows[-1]['sequences']} "
        f"{rows[-1]['step_ms']['median'] / rows[-1]['bound_ms']:.1f} times."
    )
    if figures["pads"] and first["sequences"] == 1:
        words += (
            " (One sequence is computed as two rows of which one is thrown away, so that its "
            "tokens do not depend "
            "on who else is there: the second sequence is free.)"
        )
    return words


def headline(figures: Figures) -> dict[str, float]:
    found = {
        f"tokens/s of {row['sequences']}": row["tokens_per_s"]["median"]
        for row in (figures["rows"][0], figures["rows"][-1])
    }
    if "line" in figures:
        found["measured knee, sequences"] = figures["line"]["knee"]
    if figures["roofline_knee"] is not None:
        found["roofline's knee, sequences"] = figures["roofline_knee"]
    return found
