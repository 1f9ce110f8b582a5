"""Which number of threads is best, what a neighbour costs, and how memory-bound decoding is. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.analysis.roofline import bandwidth_percent
from experiments.analysis.work import ModelWork
from experiments.frame.samples import Samples
from experiments.frame.study import Figures, Table, TooLittle
from experiments.frame.words import percent, with_range

#: Of the measured read bandwidth: beyond it the memory is what decoding waits for.
_MEMORY_BOUND_PERCENT = 60
#: Of the speed at rest: less than a fair share of one core in two explains.
_COLLAPSED = 0.4
#: Of the speed with a core for each thread: what is nearer to it is no slowdown to explain.
_SLOWED = 0.95


def judge(samples: Samples, card: Mapping[str, Any]) -> Figures:
    work = ModelWork(**samples.facts["work"]) if "work" in samples.facts else None
    rows = []
    for count in samples.settings("threads"):
        row: Figures = {"threads": count}
        for kind in samples.settings("neighbour"):
            for name in ("decode_tokens_per_s", "prompt_tokens_per_s"):
                spread = samples.spread(name, threads=count, neighbour=kind)
                row[f"{name}_{kind}"] = spread.to_json() if spread else None
        if row.get("decode_tokens_per_s_none") is None:
            continue
        read = card.get("read_gb_per_s", {}).get(str(min(count, samples.facts["cores"])))
        step_ms = [
            ms for of in samples.values("step_ms", threads=count, neighbour="none") for ms in of
        ]
        row["step_ms"] = statistics.median(step_ms)
        if work and read:
            num_bytes = work.step_bytes(1, samples.facts["position"])
            row["effective_gb_per_s"] = num_bytes / row["step_ms"] / 1e6
            row["bandwidth_percent"] = bandwidth_percent(num_bytes, row["step_ms"] / 1000, read)
        rows.append(row)
    if not rows:
        raise TooLittle("no number of threads was measured at rest")
    rows.sort(key=lambda row: int(row["threads"]))
    speeds = [(row["threads"], row["decode_tokens_per_s_none"]["median"]) for row in rows]
    prompts = [(row["threads"], row["prompt_tokens_per_s_none"]["median"]) for row in rows]
    return {
        "cores": samples.facts["cores"],
        "rows": rows,
        "best_decode_threads": best(speeds),
        "best_prompt_threads": best(prompts),
        "pads": samples.facts.get("pads", {}),
    }


def best(speeds: Sequence[tuple[int, float]]) -> int:
    """The number of threads with the most tokens a second."""
    return max(speeds, key=lambda entry: entry[1])[0]


def _row(figures: Figures, threads: int) -> Figures:
    found: Figures = next(row for row in figures["rows"] if row["threads"] == threads)
    return found


def _kept(row: Figures) -> float | None:
    """What a neighbour leaves of the speed at rest."""
    busy, rest = row.get("decode_tokens_per_s_busy"), row["decode_tokens_per_s_none"]
    return busy["median"] / rest["median"] if busy else None


def takeaway(figures: Figures) -> str:
    row = _row(figures, figures["best_decode_threads"])
    speed = row["decode_tokens_per_s_none"]["median"]
    threads = f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}"
    words = f"Decode is fastest with {threads} on {figures['cores']} cores: {speed:.0f} tokens/s"
    if "bandwidth_percent" in row:
        words += f", {row['bandwidth_percent']:.0f} % of the memory's bandwidth"
    kept = _kept(row)
    return words if kept is None else f"{words}; a busy neighbour leaves {percent(kept)} of it"


def tabulate(figures: Figures) -> Table:
    rows = []
    for row in figures["rows"]:
        cells = [str(row["threads"])]
        for name in ("decode_tokens_per_s", "prompt_tokens_per_s"):
            for kind in ("none", "busy"):
                spread = row.get(f"{name}_{kind}")
                cells.append(with_range(spread) if spread else "-")
        cells.append(f"{row['effective_gb_per_s']:.1f}" if "effective_gb_per_s" in row else "-")
        cells.append(f"{row['bandwidth_percent']:.0f} %" if "bandwidth_percent" in row else "-")
        rows.append(tuple(cells))
    columns = (
        "threads",
        "decode, tok/s",
        "with neighbour",
        "prompt, tok/s",
        "with neighbour",
        "reads, GB/s",
        "of bandwidth",
    )
    return Table(columns, tuple(rows))


def explain(figures: Figures, card: Mapping[str, Any]) -> str:
    cores, rows = figures["cores"], figures["rows"]
    first = rows[0]
    top = _row(figures, figures["best_decode_threads"])
    prompt = _row(figures, figures["best_prompt_threads"])
    words = f"{takeaway(figures)}. "
    if top is not first:
        gain = (
            top["decode_tokens_per_s_none"]["median"] / first["decode_tokens_per_s_none"]["median"]
        )
        words += f"That is {gain:.2f} times one with {first['threads']}. "
    gain = (
        prompt["prompt_tokens_per_s_none"]["median"] / first["prompt_tokens_per_s_none"]["median"]
    )
    words += (
        f"Prompts are fastest with {prompt['threads']} threads, {gain:.2f} times the speed of "
        f"{first['threads']}. "
    )
    if "bandwidth_percent" in top:
        used = top["bandwidth_percent"]
        bound = (
            "the memory is what it waits for: a smaller format would be faster, more cores hardly"
            if used >= _MEMORY_BOUND_PERCENT
            else "the kernels of this format compute longer than the memory takes to bring the weights, so "
            "another format, or more cores, may be faster"
        )
        words += (
            f"A step of one sequence reads {top['effective_gb_per_s']:.1f} GB/s of "
            f"{card['read_gb_per_s'][str(min(top['threads'], cores))]} that were measured: "
            f"{bound}. "
        )
    if figures["pads"].get(str(top["threads"])):
        words += (
            "(A lone row is computed beside a second one that is thrown away, so that its tokens "
            "do not depend on who else is there.) "
        )
    over = [row for row in rows if row["threads"] > cores]
    within = [row for row in rows if row["threads"] <= cores]
    if over and within:
        worst, rest = over[-1], within[-1]
        share = (
            worst["decode_tokens_per_s_none"]["median"] / rest["decode_tokens_per_s_none"]["median"]
        )
        words += (
            f"{worst['threads']} threads on {cores} cores decode at {percent(share)} of the speed "
            f"of {rest['threads']}"
        )
        waits = ": at each barrier all wait for those that have no core. "
        words += waits if share < _SLOWED else ". "
    kept = [(row["threads"], share) for row in rows if (share := _kept(row)) is not None]
    if kept:
        told = ", ".join(f"{percent(share)} with {threads}" for threads, share in kept)
        words += (
            f"Beside a neighbour that wants one of the cores in use, decoding keeps {told} threads."
        )
        words += _why(dict(kept), cores)
    return words


def _why(kept: Mapping[int, float], cores: int) -> str:
    """What OpenMP's waiting has to do with it."""
    spinning = [share for threads, share in kept.items() if 1 < threads <= cores]
    asleep = [share for threads, share in kept.items() if threads > cores]
    words = ""
    if 1 in kept:
        words += " One thread shares its core with the neighbour."
    if spinning and min(spinning) < _COLLAPSED:
        words += (
            " Several collapse: all wait at each barrier for the one that shares its core. OpenMP's "
            "waiting threads spin, which may keep the system from making room for it."
        )
        if asleep and max(asleep) > 2 * min(spinning):
            words += " More threads than cores, which OpenMP lets sleep sooner, keep more of less."
    return words


def headline(figures: Figures) -> dict[str, float]:
    row = _row(figures, figures["best_decode_threads"])
    found = {
        "best threads for decode": float(row["threads"]),
        "decode, tokens/s": row["decode_tokens_per_s_none"]["median"],
        "prompt, tokens/s": max(r["prompt_tokens_per_s_none"]["median"] for r in figures["rows"]),
    }
    if "bandwidth_percent" in row:
        found["of the memory's bandwidth, %"] = row["bandwidth_percent"]
    if (kept := _kept(row)) is not None:
        found["left beside a neighbour, %"] = 100 * kept
    return found
