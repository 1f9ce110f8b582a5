"""Which layout gives most, at rest and beside a neighbour. Pure."""

from collections.abc import Mapping
from typing import Any

from experiments.frame.samples import Samples
from experiments.frame.study import Figures, Table, TooLittle
from experiments.frame.words import percent

_NAMES = ("output_tokens_per_s", "ttft_p50_ms", "itl_p50_ms", "itl_p99_ms", "memory_mb")


def judge(samples: Samples, _card: Mapping[str, Any]) -> Figures:
    rows = []
    for layout in samples.settings("layout"):
        row: Figures = {"layout": layout}
        for kind in samples.settings("neighbour"):
            spreads = {n: samples.spread(n, layout=layout, neighbour=kind) for n in _NAMES}
            known = {name: spread.to_json() for name, spread in spreads.items() if spread}
            # One that gave no token in its time is no speed to compare with.
            row[kind] = known if known.get("output_tokens_per_s", {}).get("median") else None
        rows.append(row)
    rows = [row for row in rows if row.get("none")]
    if not rows:
        raise TooLittle("no layout was measured at rest")
    rows.sort(key=lambda row: int(row["layout"].split()[0]), reverse=True)
    return {
        "clients": samples.facts["clients"],
        "cores": samples.facts["cores"],
        "prompt_tokens": samples.facts["prompt_tokens"],
        "output_tokens": samples.facts["output_tokens"],
        "rows": rows,
        "best_none": best(rows, "none"),
        "best_busy": best(rows, "busy"),
    }


def best(rows: list[Figures], kind: str) -> str | None:
    known = [row for row in rows if row.get(kind)]
    if not known:
        return None
    return str(max(known, key=lambda row: _speed(row, kind))["layout"])


def _speed(row: Figures, kind: str) -> float:
    return float(row[kind]["output_tokens_per_s"]["median"])


def _row(figures: Figures, layout: str) -> Figures:
    found: Figures = next(row for row in figures["rows"] if row["layout"] == layout)
    return found


def takeaway(figures: Figures) -> str:
    rest = _row(figures, figures["best_none"])
    words = f"At rest {rest['layout']} (workers x threads) gives most: {_speed(rest, 'none'):.0f} tokens/s"
    if figures["best_busy"] is None:
        return words
    busy = _row(figures, figures["best_busy"])
    return f"{words}; beside a neighbour {busy['layout']}: {_speed(busy, 'busy'):.0f}"


def tabulate(figures: Figures) -> Table:
    rows = []
    for row in figures["rows"]:
        for kind in ("none", "busy"):
            found = row.get(kind)
            if not found:
                continue
            speed = found["output_tokens_per_s"]
            cells = [f"{row['layout']} threads", "at rest" if kind == "none" else "busy neighbour"]
            cells += [f"{speed['median']:.1f}", f"{speed['least']:.1f}-{speed['most']:.1f}"]
            for name in ("ttft_p50_ms", "itl_p50_ms", "itl_p99_ms", "memory_mb"):
                cells.append(f"{found[name]['median']:.0f}" if name in found else "-")
            rows.append(tuple(cells))
    columns = (
        "workers x threads",
        "",
        "tokens/s",
        "rounds",
        "TTFT p50, ms",
        "ITL p50, ms",
        "ITL p99, ms",
        "memory, MB",
    )
    return Table(columns, tuple(rows))


def explain(figures: Figures, _card: Mapping[str, Any]) -> str:
    rows = figures["rows"]
    small, large = rows[0], rows[-1]
    words = (
        f"{takeaway(figures)}. {figures['clients']} clients ask again as soon as they are "
        f"answered (prompts of "
        f"{figures['prompt_tokens']} tokens, answers of {figures['output_tokens']}). "
    )
    if small is not large:
        ratio = _speed(small, "none") / _speed(large, "none")
        words += (
            f"At rest {small['layout']} gives {ratio:.2f} times the tokens/s of "
            f"{large['layout']}, which reads the "
            "weights once for all clients but has its threads wait for each other at each "
            "operation. "
        )
    kept = [
        (row["layout"], _speed(row, "busy") / _speed(row, "none"))
        for row in rows
        if row.get("busy")
    ]
    if kept:
        told = ", ".join(f"{percent(share)} of {layout}" for layout, share in kept)
        words += (
            f"A neighbour that wants one of the {figures['cores']} cores leaves {told}: a fair "
            f"share of that core "
            f"would leave {percent(1 - 0.5 / figures['cores'])}."
        )
    return words


def headline(figures: Figures) -> dict[str, float]:
    return {
        f"{row['layout']}, {told}, tokens/s": _speed(row, kind)
        for row in figures["rows"]
        for kind, told in (("none", "at rest"), ("busy", "neighbour"))
        if row.get(kind)
    }
