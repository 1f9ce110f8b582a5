"""The report as one HTML file, plots in it. Pure, but for reading the plots."""

import base64
from collections.abc import Iterable, Sequence
from html import escape

from experiments.frame.study import Table
from experiments.report.parts import TITLE, Part

_STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; background: #fff }
h1, h2 { line-height: 1.2 } h2 { margin-top: 3rem; border-top: 1px solid #ccc; padding-top: 1rem }
p { max-width: 48rem } img { max-width: 100%; height: auto }
.wide { overflow-x: auto } table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem }
td, th { padding: 0.2rem 0.7rem; border-bottom: 1px solid #ddd; text-align: right }
th { vertical-align: bottom } td { vertical-align: top; white-space: nowrap }
.words, .card td { text-align: left; white-space: normal } td:first-child { white-space: nowrap }
code { background: #f2f2f2; padding: 0.1rem 0.3rem } nav a { margin-right: 1rem; white-space: nowrap }
"""


def to_html(
    parts: Sequence[Part],
    card: Sequence[tuple[str, str]],
    summary: Table,
    reproduce: str,
) -> str:
    links = " ".join(f'<a href="#{escape(part.name)}">{escape(part.name)}</a>' for part in parts)
    rows = "".join(f"<tr><td>{escape(n)}</td><td>{escape(v)}</td></tr>" for n, v in card)
    body = [
        f"<h1>{TITLE}</h1>",
        f"<nav>{links}</nav>",
        f"<p>Made by <code>{escape(reproduce)}</code>, which makes it again.</p>",
        f'<h2 id="card">Measured on</h2><div class="wide"><table class="card">{rows}</table></div>',
        f"<h2>In short</h2>{_table(summary)}",
        *(_section(part) for part in parts),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{TITLE}</title><style>{_STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _section(part: Part) -> str:
    found = [f'<h2 id="{escape(part.name)}">{escape(part.title)}</h2>']
    if part.plot:
        drawn = base64.b64encode(part.plot.read_bytes()).decode()
        found.append(
            f'<img alt="{escape(part.paragraphs[0])}" src="data:image/png;base64,{drawn}">'
        )
    found += [f"<p>{escape(text)}</p>" for text in part.paragraphs if text]
    for title, table in part.tables:
        if title:
            found.append(f"<h3>{escape(title)}</h3>")
        found.append(_table(table))
    found.append(f"<p>Again, alone: <code>{escape(part.again)}</code> ({part.took_s:.0f} s).</p>")
    return "\n".join(found)


def _table(table: Table) -> str:
    words = [' class="words"' if table.is_words(n) else "" for n in range(len(table.columns))]

    def cells(tag: str, row: Iterable[str]) -> str:
        pairs = zip(words, row, strict=True)
        return "<tr>" + "".join(f"<{tag}{of}>{escape(c)}</{tag}>" for of, c in pairs) + "</tr>"

    rows = "".join(cells("td", row) for row in table.rows)
    return f'<div class="wide"><table>{cells("th", table.columns)}{rows}</table></div>'
