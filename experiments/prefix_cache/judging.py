"""What a prefix that is there already saves, and from which length on. Pure."""

from collections.abc import Mapping
from typing import Any

from experiments.analysis.crossing import crossing
from experiments.analysis.fit import fit_polynomial
from experiments.frame.samples import Samples
from experiments.frame.study import Figures, Table, TooLittle
from experiments.frame.words import seconds, times, with_range

_WAYS = ("recompute", "restore", "same slot")


def judge(samples: Samples, _card: Mapping[str, Any]) -> Figures:
    rows: list[Figures] = []
    for prefix in sorted(samples.settings("prefix")):
        spreads = {way: samples.spread("ttft_ms", prefix=prefix, way=way) for way in _WAYS}
        known = {way: spread.to_json() for way, spread in spreads.items() if spread}
        if len(known) < len(_WAYS):
            continue
        tokens = {tuple(s.values["tokens"]) for s in samples.of(prefix=prefix)}
        rows.append(
            {
                "prefix": prefix,
                **known,
                "copy_ms": samples.median("copy_ms", prefix=prefix),
                "state_mb": max(samples.values("state_bytes", prefix=prefix)) / 1e6,
                "restore_saves": known["recompute"]["median"] / known["restore"]["median"],
                "same_slot_saves": known["recompute"]["median"] / known["same slot"]["median"],
                "is_exact": len(tokens) == 1,
            }
        )
    if not rows:
        raise TooLittle("no prefix was measured in all three ways")
    prefixes = [row["prefix"] for row in rows]
    is_expected = bool(samples.facts["is_exact_expected"])
    figures: Figures = {
        "own_tokens": samples.facts["own_tokens"],
        "rows": rows,
        "pays_from": crossing(
            prefixes,
            [row["restore"]["median"] for row in rows],
            [row["recompute"]["median"] for row in rows],
        ),
        "is_exact": all(row["is_exact"] for row in rows),
        "is_exact_expected": is_expected,
        "format": samples.facts["format"],
    }
    if len(rows) >= 4:
        copied = fit_polynomial(prefixes, [row["copy_ms"] for row in rows], 1)
        figures["copy_us_per_token"] = max(0.0, copied.coefficients[1] * 1000)
    if is_expected and not figures["is_exact"]:
        told = ", ".join(str(row["prefix"]) for row in rows if not row["is_exact"])
        figures["problem"] = (
            f"the tokens must not depend on where the prefix came from with this format "
            f"({figures['format']}), and they do, for prefixes of {told} tokens"
        )
    return figures


def takeaway(figures: Figures) -> str:
    last = figures["rows"][-1]
    return (
        f"First token after {last['prefix']} known tokens: "
        f"{seconds(last['recompute']['median'] / 1000)} "
        f"computed again, {seconds(last['restore']['median'] / 1000)} from a snapshot "
        f"({times(last['restore_saves'])} times sooner)"
    )


def tabulate(figures: Figures) -> Table:
    rows = [
        (
            str(row["prefix"]),
            *(with_range(row[way], 4) for way in _WAYS),
            f"{times(row['restore_saves'])} x",
            f"{times(row['same_slot_saves'])} x",
            f"{row['copy_ms']:.2f}",
            f"{row['state_mb']:.1f}",
            "yes" if row["is_exact"] else "no",
        )
        for row in figures["rows"]
    ]
    columns = (
        "prefix",
        "computed again, ms",
        "snapshot, ms",
        "same slot, ms",
        "snapshot saves",
        "same slot saves",
        "of it copying, ms",
        "snapshot, MB",
        "same tokens",
    )
    return Table(columns, tuple(rows))


def explain(figures: Figures, _card: Mapping[str, Any]) -> str:
    rows = figures["rows"]
    first, last = rows[0], rows[-1]
    words = (
        f"{takeaway(figures)}; {seconds(last['same slot']['median'] / 1000)} if it is still in "
        f"the same slot. "
        f"Each prompt has {figures['own_tokens']} tokens of its own, which all three compute: "
        f"what is left of the "
        f"time to the first token when the prefix costs nothing. "
    )
    if first is not last:
        words += (
            f"Computed again, the first token comes after "
            f"{seconds(first['recompute']['median'] / 1000)} at {first['prefix']} tokens, after "
            f"{seconds(last['recompute']['median'] / 1000)} at {last['prefix']}. "
        )
    if "copy_us_per_token" in figures:
        words += (
            f"A snapshot of {last['prefix']} tokens is copied in {last['copy_ms']:.2g} ms, "
            f"{figures['copy_us_per_token']:.1f} µs for "
            f"each token more ({last['state_mb'] / last['prefix'] * 1000:.0f} KB). "
        )
    else:
        words += (
            f"A snapshot of {last['prefix']} tokens is {last['state_mb']:.1f} MB that are copied. "
        )
    pays = figures["pays_from"]
    if pays is None:
        paid = [str(row["prefix"]) for row in rows if row["restore_saves"] >= 1]
        words += "A snapshot did not pay here"
        words += f", but at {', '.join(paid)} tokens. " if paid else ". "
    elif pays <= first["prefix"]:
        words += (
            f"It pays from the shortest prefix that was measured ({first['prefix']} tokens) on. "
        )
    else:
        words += f"It pays from {pays:.0f} tokens on. "
    if figures["is_exact"]:
        words += "The tokens that follow are the same in all three ways."
    else:
        words += (
            f"The tokens that follow are not the same in all three: in this format "
            f"({figures['format']}) kernels "
            "round otherwise for other numbers of rows."
        )
    return words


def headline(figures: Figures) -> dict[str, float]:
    last = figures["rows"][-1]
    return {
        f"computed again, ms for {last['prefix']} tokens": last["recompute"]["median"],
        f"snapshot, ms for {last['prefix']} tokens": last["restore"]["median"],
        f"same slot, ms for {last['prefix']} tokens": last["same slot"]["median"],
    }
