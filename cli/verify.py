"""`mini-vllm model verify`: two files of one model, compared by what they predict of a text."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from cli.divergence import Divergence, Figures
from shared.cores import usable_cores
from shared.errors import SetupError
from shared.gguf_header import read_facts
from shared.weight_formats import format_of
from worker.backends.scorer import WINDOW_TOKENS, Scorer


def verify(a: Path, b: Path, text_file: Path | None, num_chunks: int) -> None:
    """Prints a table and, as the last line, JSON. Raises ``ServiceError``."""
    text = read_text(text_file)
    threads = len(usable_cores().cores)
    with closing(Scorer(a, threads)) as one, closing(Scorer(b, threads)) as other:
        if one.vocabulary_key != other.vocabulary_key:
            raise SetupError(
                f"{a.name} and {b.name} have different vocabularies, so what they predict cannot be "
                "compared; both must be formats of one model"
            )
        tokens = one.tokenize(text)
        if tokens != other.tokenize(text):
            raise SetupError(f"{a.name} and {b.name} make different tokens of the same text")
        windows = windows_of(tokens, num_chunks)
        if not windows:
            raise SetupError(
                f"--text: the text has {len(tokens)} tokens, and at least {WINDOW_TOKENS} are needed"
            )
        found = Divergence()
        for window in track(windows, "comparing", console=Console(stderr=True)):
            for (rows_a, followed_by), (rows_b, _) in zip(
                one.score(window), other.score(window), strict=True
            ):
                found.add(rows_a, rows_b, followed_by)
    _print(a, b, found.figures(), len(windows))


def windows_of(tokens: list[int], num_chunks: int) -> list[list[int]]:
    """Whole ones only, at most so many, from the beginning."""
    whole = len(tokens) // WINDOW_TOKENS
    return [tokens[i * WINDOW_TOKENS :][:WINDOW_TOKENS] for i in range(min(whole, num_chunks))]


def read_text(path: Path | None) -> str:
    if path is None:
        # English that every Python carries.
        from pydoc_data.topics import topics

        return "\n".join(topics.values())
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(f"--text: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SetupError(f"--text: {path} is no UTF-8 text") from None


def _print(a: Path, b: Path, figures: Figures, num_chunks: int) -> None:
    described = [_describe(a), _describe(b)]
    table = Table("", "A", "B", box=None, pad_edge=False)
    rows: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("format", lambda of: of["format"]),
        ("size", lambda of: f"{of['size_bytes'] / 1e6:.0f} MB"),
    ]
    for name, cell in rows:
        table.add_row(name, *map(cell, described))
    table.add_row("perplexity", f"{figures.perplexity_a:.3f}", f"{figures.perplexity_b:.3f}")
    table.add_row("KL divergence from A, mean", "", f"{figures.kl_mean:.5f} nats")
    table.add_row("  99 of 100 tokens below", "", f"{figures.kl_p99:.4f}")
    table.add_row("same top token as A", "", f"{figures.top_agreement:.2%}")
    Console(soft_wrap=True).print(table)
    print(
        f"\nover {figures.tokens} tokens: the second halves of {num_chunks} windows of {WINDOW_TOKENS}\n"
        f"A  {a}\nB  {b}"
    )
    rounded = {name: round(value, 6) for name, value in asdict(figures).items()}
    print(json.dumps({"a": described[0], "b": described[1], "chunks": num_chunks} | rounded))


def _describe(path: Path) -> dict[str, Any]:
    known = format_of(read_facts(path).file_type)
    return {
        "path": str(path),
        "format": known.name if known else "other",
        "size_bytes": path.stat().st_size,
    }
