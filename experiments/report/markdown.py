"""The report as Markdown, beside its plots. Pure."""

from collections.abc import Sequence

from experiments.frame.study import Table
from experiments.report.parts import TITLE, Part


def to_markdown(
    parts: Sequence[Part],
    card: Sequence[tuple[str, str]],
    summary: Table,
    reproduce: str,
) -> str:
    lines = [
        f"# {TITLE}",
        "",
        f"Made by `{reproduce}`, which makes it again.",
        "",
        "## Measured on",
        "",
        *_table(Table(("", ""), tuple(card))),
        "## In short",
        "",
        *_table(summary),
    ]
    for part in parts:
        lines += [f"## {part.title}", ""]
        if part.plot:
            lines += [f"![{part.title}]({part.plot.name})", ""]
        for text in part.paragraphs:
            lines += [text, ""] if text else []
        for title, table in part.tables:
            lines += [f"### {title}", ""] if title else []
            lines += _table(table)
        lines += [f"Again, alone: `{part.again}` ({part.took_s:.0f} s).", ""]
    return "\n".join(lines)


def _table(table: Table) -> list[str]:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    aligned = (
        "|"
        + "|".join("---" if table.is_words(n) else "--:" for n in range(len(table.columns)))
        + "|"
    )
    return [line(table.columns), aligned, *map(line, table.rows), ""]
