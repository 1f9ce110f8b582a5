"""What the two ways of generating say together. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.frame.samples import Sample, Samples, Spread
from experiments.frame.study import Figures, Table, TooLittle
from experiments.frame.words import percent, seconds, times, with_range

_WAYS = ("cached", "recomputed")


def slowdown(cached_s: float, recomputed_s: float) -> float:
    return recomputed_s / cached_s


def judge(samples: Samples, _card: Mapping[str, Any]) -> Figures:
    timed = {way: _longest(samples.of(way=way)) for way in _WAYS}
    if not all(timed.values()):
        raise TooLittle("neither way was measured to its end")
    rows = []
    for length in samples.facts["lengths"]:
        totals = {way: _spread(timed[way], length) for way in _WAYS}
        cached, recomputed = totals["cached"], totals["recomputed"]
        if cached is None or recomputed is None:
            continue
        rows.append(
            {
                "tokens": length,
                "cached_s": cached.to_json(),
                "recomputed_s": recomputed.to_json(),
                "cached_tokens_per_s": length / cached.median,
                "recomputed_tokens_per_s": length / recomputed.median,
                "slowdown": slowdown(cached.median, recomputed.median),
            }
        )
    if not rows:
        raise TooLittle("no length was measured to its end in both ways")
    is_expected = bool(samples.facts["is_exact_expected"])
    differences = first_differences(samples)
    figures: Figures = {
        "prompt_tokens": samples.facts["prompt_tokens"],
        "rows": rows,
        "cached_token_ms": _token_ms(timed["cached"]),
        "recomputed_token_ms": _token_ms(timed["recomputed"]),
        "first_differences": differences,
        "is_exact_expected": is_expected,
        "is_exact": all(at is None for at in differences.values()),
        "format": samples.facts["format"],
    }
    if is_expected and not figures["is_exact"]:
        told = ", ".join(f"{n} rows: token {at}" for n, at in differences.items() if at is not None)
        figures["problem"] = (
            f"the tokens must not depend on the cache with this format ({figures['format']}), and "
            f"they "
            f"do: recomputed in chunks of {told}"
        )
    return figures


def first_differences(samples: Samples) -> dict[str, int | None]:
    """By rows of a chunk of the recompute: the first token that is not the one of the cached "
    "run."""
    expected = max(samples.values("tokens", way="cached"), key=len)
    found: dict[str, int | None] = {}
    for sample in samples.of(way="recomputed"):
        pairs = zip(sample.values["tokens"], expected, strict=False)
        at = next((n for n, (ours, theirs) in enumerate(pairs) if ours != theirs), None)
        key = str(sample.case["chunk"])
        known = [n for n in (at, found.get(key)) if n is not None]
        found[key] = min(known) if known else None
    return found


def _longest(samples: Sequence[Sample]) -> list[list[float]]:
    """Of the runs that were timed: those that only check tokens are shorter."""
    series = [sample.values["token_s"] for sample in samples]
    most = max((len(token_s) for token_s in series), default=0)
    return [token_s for token_s in series if len(token_s) == most]


def _spread(series: Sequence[Sequence[float]], length: int) -> Spread | None:
    totals = [token_s[length - 1] for token_s in series if len(token_s) >= length]
    if not totals:
        return None
    return Spread(statistics.median(totals), min(totals), max(totals), len(totals))


def _token_ms(series: Sequence[Sequence[float]]) -> list[float]:
    """Of each token, over the rounds; the first is the prompt's."""
    per_token = [
        [(end - begin) * 1000 for begin, end in zip([0.0, *one], one, strict=False)]
        for one in series
    ]
    return [float(f"{statistics.median(of):.5g}") for of in zip(*per_token, strict=True)]


def takeaway(figures: Figures) -> str:
    last = figures["rows"][-1]
    return (
        f"Without the KV cache {last['tokens']} tokens take {times(last['slowdown'])} times as "
        f"long: "
        f"{seconds(last['recomputed_s']['median'])} instead of "
        f"{seconds(last['cached_s']['median'])}"
    )


def tabulate(figures: Figures) -> Table:
    rows = [
        (
            str(row["tokens"]),
            with_range(row["cached_s"]),
            with_range(row["recomputed_s"]),
            f"{row['cached_s']['median'] / row['tokens'] * 1000:.1f}",
            f"{row['recomputed_s']['median'] / row['tokens'] * 1000:.1f}",
            f"{row['cached_tokens_per_s']:.1f}",
            f"{row['recomputed_tokens_per_s']:.1f}",
            f"{times(row['slowdown'])} x",
        )
        for row in figures["rows"]
    ]
    columns = (
        "tokens",
        "cached, s",
        "recomputed, s",
        "cached, ms/token",
        "recomputed, ms/token",
        "cached, tok/s",
        "recomputed, tok/s",
        "slowdown",
    )
    return Table(columns, tuple(rows))


def explain(figures: Figures, _card: Mapping[str, Any]) -> str:
    first, last = figures["rows"][0], figures["rows"][-1]
    # Either may have gone on beyond the last length that both were measured to.
    cached = figures["cached_token_ms"][: last["tokens"]]
    recomputed = figures["recomputed_token_ms"][: last["tokens"]]
    begin, end = recomputed[1], recomputed[-1]
    words = (
        f"{takeaway(figures)}. With the cache the last token costs {cached[-1]:.1f} ms, the second "
        f"{cached[1]:.1f} ms: each is one row, whatever stands before it. Without it a token "
        f"costs a prompt of "
        f"everything so far: {begin:.0f} ms for the second token, {end:.0f} ms for the last "
        f"({figures['prompt_tokens'] + last['tokens'] - 1} tokens each time)."
    )
    if first is not last:
        grows = last["slowdown"] > first["slowdown"]
        words += " So the slowdown grows with the length" if grows else " The slowdown is"
        words += (
            f"{':' if grows else ''} {times(first['slowdown'])} at {first['tokens']} tokens, "
            f"{times(last['slowdown'])} at {last['tokens']}."
        )
    computed = sum(range(figures["prompt_tokens"], figures["prompt_tokens"] + last["tokens"]))
    in_cache = figures["prompt_tokens"] + last["tokens"] - 1
    more = computed / in_cache
    words += (
        f" It computes {times(more)} times as many tokens ({computed} instead of {in_cache}), and "
        f"takes {percent(last['slowdown'] / more)} of what that would take one row at a time"
    )
    words += (
        ": rows of a prompt share each read of the weights." if last["slowdown"] < more else "."
    )
    return words + "\n" + _exactness(figures)


def _exactness(figures: Figures) -> str:
    chunks = ", ".join(sorted(figures["first_differences"], key=int))
    if figures["is_exact"]:
        return f"The tokens are identical in both, also when recomputed in chunks of {chunks} rows."
    told = ", ".join(
        f"chunks of {rows} rows from token {at} on" if at is not None else f"chunks of {rows}: none"
        for rows, at in figures["first_differences"].items()
    )
    return (
        f"The tokens differ ({told}): in this format ({figures['format']}) llama.cpp's kernels "
        f"round "
        "otherwise for other numbers of rows."
    )


def headline(figures: Figures) -> dict[str, float]:
    last = figures["rows"][-1]
    return {
        f"cached, s for {last['tokens']} tokens": last["cached_s"]["median"],
        f"recomputed, s for {last['tokens']} tokens": last["recomputed_s"]["median"],
        f"slowdown at {last['tokens']} tokens": last["slowdown"],
    }
