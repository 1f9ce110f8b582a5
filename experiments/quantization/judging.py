"""Which format to run for chat and which for batches, and which nothing else beats. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from cli import pareto
from experiments.frame.samples import Samples
from experiments.frame.study import Figures, Table, TooLittle
from experiments.quantization.kernels import kernels_of

SEQUENCES = (1, 8, 16)
#: More perplexity than the best format's by this is a loss that people may notice.
_SAME_QUALITY = 1.02


def judge(samples: Samples, card: Mapping[str, Any]) -> Figures:
    rows: list[Figures] = []
    features = str(card.get("features", ""))
    for name in samples.settings("format"):
        speeds = {
            key: samples.spread(key, format=name)
            for key in ("prompt_tokens_per_s", *(f"decode_{n}_tokens_per_s" for n in SEQUENCES))
        }
        if not all(speeds.values()):
            continue
        facts = samples.facts["formats"][name]
        rows.append(
            {
                "format": name,
                "told": f"{samples.facts['own']}, as is" if name == "as-is" else name,
                "file_mb": facts["file_mb"],
                "rss_mb": facts["rss_mb"],
                "load_s": facts["load_s"],
                "kernels": kernels_of(
                    samples.facts["own"] if name == "as-is" else name,
                    facts["file_mb"],
                    facts["buffers_mb"],
                    features,
                ),
                **{key: spread.to_json() for key, spread in speeds.items() if spread},
                **{
                    key: samples.median(key, quality=name)
                    for key in ("perplexity", "kl_mean", "top_agreement")
                },
            }
        )
    if not rows:
        raise TooLittle("no format was measured")
    scored = samples.values("scored_tokens")
    figures: Figures = {
        "reference": samples.facts["reference"],
        "own": samples.facts["own"],
        "scored_tokens": scored[0] if scored else 0,
        "rows": rows,
        "pareto_chat": _front(rows, 1),
        "pareto_batch": _front(rows, SEQUENCES[-1]),
        "chat": _choose(rows, 1),
        "batch": _choose(rows, SEQUENCES[-1]),
    }
    return figures


def speed_of(row: Mapping[str, Any], sequences: int) -> float:
    return float(row[f"decode_{sequences}_tokens_per_s"]["median"])


def _front(rows: Sequence[Figures], sequences: int) -> list[str]:
    """No other format is at least as fast, as good and as small, and better in one of them."""
    known = [row for row in rows if row["perplexity"] is not None]
    points = [(speed_of(row, sequences), -row["perplexity"], -row["rss_mb"]) for row in known]
    return [known[number]["format"] for number in pareto.front(points)]


def _choose(rows: Sequence[Figures], sequences: int) -> str | None:
    """The fastest of those that lose nothing to speak of; None if no quality was measured."""
    known = [row for row in rows if row["perplexity"] is not None]
    if not known:
        return None
    limit = min(row["perplexity"] for row in known) * _SAME_QUALITY
    good = [row for row in known if row["perplexity"] <= limit]
    return str(max(good, key=lambda row: speed_of(row, sequences))["format"])


def _row(figures: Figures, name: str) -> Figures:
    found: Figures = next(row for row in figures["rows"] if row["format"] == name)
    return found


def takeaway(figures: Figures) -> str:
    if figures["chat"] is None or figures["batch"] is None:
        fastest = max(figures["rows"], key=lambda row: speed_of(row, 1))
        return f"{fastest['told']} decodes fastest: {speed_of(fastest, 1):.0f} tokens/s"
    chat, batch = _row(figures, figures["chat"]), _row(figures, figures["batch"])
    many = SEQUENCES[-1]
    if chat is batch:
        return (
            f"{chat['told']} for chat and for batches: {speed_of(chat, 1):.0f} tokens/s alone, "
            f"{speed_of(chat, many):.0f} with {many} sequences, at full quality"
        )
    return (
        f"{chat['told']} for chat ({speed_of(chat, 1):.0f} tokens/s alone), {batch['told']} for "
        f"batches "
        f"({speed_of(batch, many):.0f} with {many} sequences), at full quality"
    )


def tabulate(figures: Figures) -> Table:
    rows = []
    for row in figures["rows"]:
        quality = (
            (f"{row['perplexity']:.2f}", f"{row['kl_mean']:.4f}", f"{row['top_agreement']:.1%}")
            if row["perplexity"] is not None
            else ("-", "-", "-")
        )
        rows.append(
            (
                row["told"],
                f"{row['file_mb']:.0f}",
                f"{row['rss_mb']:.0f}",
                f"{row['load_s']:.2f}",
                f"{row['prompt_tokens_per_s']['median']:.0f}",
                *(f"{speed_of(row, count):.0f}" for count in SEQUENCES),
                *quality,
                row["kernels"],
            )
        )
    columns = (
        "format",
        "file, MB",
        "memory, MB",
        "load, s",
        "prompt, tok/s",
        *(f"decode, {count} seq" for count in SEQUENCES),
        "perplexity",
        "KL, nats",
        "same top",
        "kernels",
    )
    return Table(columns, tuple(rows))


def explain(figures: Figures, _card: Mapping[str, Any]) -> str:
    rows, many = figures["rows"], SEQUENCES[-1]
    own = rows[0]
    words = f"{takeaway(figures)}. "
    if figures["chat"] is not None and figures["batch"] is not None:
        words += (
            f"Full quality is a perplexity within {_SAME_QUALITY - 1:.0%} of the best, over "
            f"{figures['scored_tokens']} tokens; KL divergence is told against "
            f"{figures['reference']}. "
        )
        batch = _row(figures, figures["batch"])
        if batch is not own:
            words += (
                f"With {many} sequences {batch['told']} gives "
                f"{speed_of(batch, many) / speed_of(own, many):.1f} "
                f"times the tokens/s of the file as it is, for "
                f"{batch['rss_mb'] / own['rss_mb']:.1f} times the "
                "memory. "
            )
    fastest = max(rows, key=lambda row: speed_of(row, many))
    slowest = min(rows, key=lambda row: speed_of(row, many))
    words += (
        f"A format is a choice of kernels: with {many} sequences {fastest['told']} "
        f"({fastest['kernels']}) decodes "
        f"{speed_of(fastest, many) / speed_of(slowest, many):.1f} times as fast as "
        f"{slowest['told']} "
        f"({slowest['kernels']}), with one {speed_of(fastest, 1) / speed_of(slowest, 1):.1f} times."
    )
    lossy = [
        row
        for row in rows
        if row["perplexity"] is not None
        and row["perplexity"]
        > min(r["perplexity"] for r in rows if r["perplexity"]) * _SAME_QUALITY
    ]
    if lossy:
        told = ", ".join(f"{row['told']} {row['perplexity']:.2f}" for row in lossy)
        best = min(row["perplexity"] for row in rows if row["perplexity"] is not None)
        words += f" Quality is lost by (perplexity, {best:.2f} is the best): {told}."
    return words


def headline(figures: Figures) -> dict[str, float]:
    found = {}
    for row in figures["rows"]:
        found[f"{row['told']}, 1 sequence, tokens/s"] = speed_of(row, 1)
        found[f"{row['told']}, {SEQUENCES[-1]} sequences, tokens/s"] = speed_of(row, SEQUENCES[-1])
    return found
