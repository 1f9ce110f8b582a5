"""How both costs grow, what theory says of it, and where they part. Pure."""

from collections.abc import Mapping
from typing import Any

from experiments.analysis.fit import Fit, fit_polynomial, growth_exponent
from experiments.analysis.work import ModelWork
from experiments.cache_complexity.curves import (
    LOCAL_REACH,
    Curve,
    cached_curve,
    even_lengths,
    prompt_times,
    recomputed_curve,
)
from experiments.frame.samples import Samples
from experiments.frame.study import Figures, Table, TooLittle
from experiments.frame.words import figure, percent, seconds, times

_SQUARE = 2
#: Of lengths, and of borders of a prompt: fewer say nothing of a square.
_LEAST_POINTS = 5
_EXACT_CHUNK = 56
#: Of the longest answer: where a growth is told that is no longer that of the beginning.
_LATE = 0.5
_TERMS = (("b", "N"), ("c", "N²"))


def judge(samples: Samples, _card: Mapping[str, Any]) -> Figures:
    if not samples.of(way="cached") or not samples.of(way="prompt", chunk=_EXACT_CHUNK):
        raise TooLittle("cached and recomputed must both be measured once")
    prompt_tokens = int(samples.facts["prompt_tokens"])
    work = ModelWork(**samples.facts["work"])
    tokens, prompt_s = prompt_times(samples, _EXACT_CHUNK)
    measured = min(len(s.values["at_s"]) for s in samples.of(way="cached"))
    lengths = even_lengths(min(measured, tokens[-1] - prompt_tokens + 1))
    cached = cached_curve(samples, lengths)
    recomputed = recomputed_curve(tokens, prompt_s, prompt_tokens, lengths)
    if len(lengths) < _LEAST_POINTS or len(tokens) <= _LEAST_POINTS:
        raise TooLittle("too few lengths were measured to fit a curve")
    figures: Figures = {
        "prompt_tokens": prompt_tokens,
        "lengths": lengths,
        "cached": _growth(cached),
        "recomputed": _growth(recomputed),
        "prompt_fit": fit_polynomial(tokens[1:], prompt_s[1:], _SQUARE).to_json(),
        "token_fit": _token_fit(cached, samples.facts.get("padded_from")).to_json(),
        "padded_from": samples.facts.get("padded_from"),
        "slowdown": [r / c for r, c in zip(recomputed.total_s, cached.total_s, strict=True)],
        "work": _work(work, prompt_tokens, lengths, cached, recomputed),
        "batching": _batching(samples, tokens, prompt_s, prompt_tokens),
    }
    tiled_tokens, tiled_s = prompt_times(samples, 256)
    if tiled_tokens[-1] == tokens[-1]:
        figures["tiled_speedup"] = prompt_s[-1] / tiled_s[-1]
        tiled = recomputed_curve(tiled_tokens, tiled_s, prompt_tokens, lengths)
        figures["tiled"] = {"total_s": list(tiled.total_s)}
    return figures


def _growth(curve: Curve) -> Figures:
    fit = fit_polynomial(curve.lengths, curve.total_s, _SQUARE)
    late = [n for n, length in enumerate(curve.lengths) if length >= _LATE * curve.lengths[-1]]
    return {
        "total_s": list(curve.total_s),
        "token_ms": list(curve.token_ms),
        "fit": fit.to_json(),
        "late_exponent": growth_exponent(
            [curve.lengths[n] for n in late], [curve.total_s[n] for n in late]
        ),
        "cube_share": _cube_share(curve),
    }


def _token_fit(curve: Curve, padded_from: int | None) -> Fit:
    """A lone row that is computed as two costs more whatever stands before it: where that begins
    within the answer, only what comes after it tells what looking back costs."""
    points = list(zip(curve.lengths, curve.token_ms, strict=True))
    alike = [(n, ms) for n, ms in points if padded_from is None or n > padded_from + LOCAL_REACH]
    if len(alike) < _LEAST_POINTS:
        alike = points
    return fit_polynomial([n for n, _ in alike], [ms for _, ms in alike], 1)


def _cube_share(curve: Curve) -> float:
    """What a cube adds to the fit at the longest answer, of its cost: 0 where a square says it "
    "all."""
    cube = fit_polynomial(curve.lengths, curve.total_s, 3)
    longest = curve.lengths[-1]
    return cube.coefficients[3] * longest**3 / curve.total_s[-1]


def _work(
    work: ModelWork, prompt_tokens: int, lengths: list[int], cached: Curve, recomputed: Curve
) -> Figures:
    """Tokens processed, floating point operations, and how many of them a second."""
    found: Figures = {"cached": [], "recomputed": []}
    again_flops, again_tokens, done = 0.0, 0, 0
    for number, length in enumerate(lengths):
        end = prompt_tokens + length - 1
        once = work.flops(0, end, outputs=length)
        for known in range(prompt_tokens + done, prompt_tokens + length):
            again_flops += work.flops(0, known, outputs=1)
            again_tokens += known
        done = length
        for name, tokens, flops, curve in (
            ("cached", end, once, cached),
            ("recomputed", again_tokens, again_flops, recomputed),
        ):
            found[name].append(
                {
                    "tokens": tokens,
                    "gflop": flops / 1e9,
                    "gflop_per_s": flops / 1e9 / curve.total_s[number],
                }
            )
    return found


def _batching(
    samples: Samples, tokens: list[int], prompt_s: list[float], prompt_tokens: int
) -> float:
    """How much faster a prompt of the longest answer is computed than row by row."""
    rows = cached_curve(samples, [tokens[-1] - prompt_tokens])
    return rows.total_s[0] / prompt_s[-1] if rows.total_s else 0.0


def attention_share(figures: Figures) -> float:
    """Of the last cached token, what grows with the length."""
    fit, longest = figures["token_fit"], figures["lengths"][-1]
    grown = max(0.0, fit["b"] * longest)
    whole = fit["a"] + grown
    return grown / whole if whole > 0 else 0.0


def takeaway(figures: Figures) -> str:
    longest = figures["lengths"][-1]
    cached, recomputed = figures["cached"], figures["recomputed"]
    return (
        f"{longest} tokens: {seconds(cached['total_s'][-1])} with the cache (growing as N^"
        f"{cached['late_exponent']:.2f}), {seconds(recomputed['total_s'][-1])} without (N^"
        f"{recomputed['late_exponent']:.2f}): {times(figures['slowdown'][-1])} times"
    )


def tabulate(figures: Figures) -> Table:
    rows = []
    for number, length in enumerate(figures["lengths"]):
        ours, again = (figures["work"][way][number] for way in ("cached", "recomputed"))
        rows.append(
            (
                str(length),
                figure(figures["cached"]["total_s"][number], 3),
                figure(figures["recomputed"]["total_s"][number]),
                f"{times(figures['slowdown'][number])} x",
                f"{ours['tokens']}",
                f"{again['tokens']}",
                figure(ours["gflop"], 3),
                figure(again["gflop"]),
                figure(ours["gflop_per_s"], 3),
                figure(again["gflop_per_s"], 3),
            )
        )
    columns = (
        "length",
        "cached, s",
        "recomputed, s",
        "slowdown",
        "tokens, cached",
        "tokens, recomputed",
        "GFLOP, cached",
        "GFLOP, recomputed",
        "GFLOP/s, cached",
        "GFLOP/s, recomputed",
    )
    return Table(columns, tuple(rows))


def _formula(fit: Mapping[str, float]) -> str:
    terms = [f"{'-' if fit[n] < 0 else '+'} {figure(abs(fit[n]), 3)} {of}" for n, of in _TERMS]
    return f"{figure(fit['a'], 3)} {' '.join(terms)} s (R² {fit['r2']:.5f})"


def explain(figures: Figures, _card: Mapping[str, Any]) -> str:
    cached, recomputed = figures["cached"], figures["recomputed"]
    longest = figures["lengths"][-1]
    work = figures["work"]
    words = (
        f"With the cache: {_formula(cached['fit'])}. Without: {_formula(recomputed['fit'])}. At "
        f"{longest} tokens "
        f"that is {seconds(cached['total_s'][-1])} against {seconds(recomputed['total_s'][-1])}, "
        f"{times(figures['slowdown'][-1])} times; the tokens processed are "
        f"{work['cached'][-1]['tokens']} against {work['recomputed'][-1]['tokens']}, "
        f"{times(work['recomputed'][-1]['tokens'] / work['cached'][-1]['tokens'])} times."
    )
    words += (
        f"\nWhere the curves leave the theory. With the cache the cost is no line: a look back at "
        f"all tokens is "
        f"{percent(attention_share(figures))} of the last token's time, and from half of the "
        f"length on the "
        f"total grows as N^{cached['late_exponent']:.2f}. Without it, it grows as N^"
        f"{recomputed['late_exponent']:.2f} there"
    )
    words += (
        f": attention makes a prompt itself more than a line, and the cube that this adds is "
        f"{percent(recomputed['cube_share'])} of the cost at the end."
        if recomputed["cube_share"] > 0
        else "; a cube, which attention would add, is not to be seen."
    )
    ratio = work["recomputed"][-1]["tokens"] / work["cached"][-1]["tokens"]
    is_below = figures["slowdown"][-1] < ratio and figures["batching"] > 1
    if is_below:
        words += (
            f" The slowdown is {percent(figures['slowdown'][-1] / ratio)} of the ratio of tokens, "
            f"since a prompt"
        )
    else:
        words += " A prompt"
    words += (
        f" of {longest} tokens is computed at {times(figures['batching'])} times the speed of row "
        f"by row: {figure(work['recomputed'][-1]['gflop_per_s'], 3)} GFLOP/s, where cached tokens reach "
        f"{figure(work['cached'][-1]['gflop_per_s'], 3)}."
    )
    if "tiled_speedup" in figures:
        words += (
            f" In chunks of 256 rows instead of 56, which may give other tokens, a prompt of that "
            f"length takes "
            f"{percent(1 / figures['tiled_speedup'])} of the time."
        )
    if figures.get("padded_from"):
        words += (
            f" From token {figures['padded_from']} of the answer on its row is computed together with a "
            "second one that is thrown away (attention is split among threads there, for a lone row "
            "alone, and tokens must not depend on who else runs): that is the step in the curve."
        )
    words += (
        "\nThe cost without the cache is the sum of measured prompts: one prompt, timed at the "
        "border of each "
        "chunk, is the recompute of every shorter length."
    )
    return words


def headline(figures: Figures) -> dict[str, float]:
    longest = figures["lengths"][-1]
    return {
        f"cached, s for {longest} tokens": figures["cached"]["total_s"][-1],
        f"recomputed, s for {longest} tokens": figures["recomputed"]["total_s"][-1],
        f"slowdown at {longest} tokens": figures["slowdown"][-1],
        "attention's share of the last cached token, %": 100 * attention_share(figures),
    }


def fit_of(saved: Mapping[str, float]) -> Fit:
    return Fit((saved["a"], saved["b"], saved["c"]), saved["r2"])
