"""The reports of all experiments: whole, escaped, and nothing beside them needed."""

from html.parser import HTMLParser
from pathlib import Path

from experiments.frame.run import Outcome, keep
from experiments.frame.study import Table
from experiments.kv_cache.study import STUDY
from experiments.report.markdown import to_markdown
from experiments.report.page import to_html
from experiments.report.parts import Part, card_rows, part_of, summary
from tests.unit.experiments.recorded import run_of

AGAIN = "mini-vllm experiment kv-cache --quick"


def made(folder: Path, *, is_interrupted: bool = False) -> Outcome:
    run = run_of("kv-cache")
    result = {
        "experiment": "kv-cache",
        "card": run.card,
        "figures": run.figures,
        "headline": STUDY.headline(run.figures),
        "is_interrupted": is_interrupted,
        "broke": "",
        "noise": "rounds differ",
        "took_s": 12.0,
        "samples": {},
    }
    text, table = STUDY.explain(run.figures, run.card), STUDY.tabulate(run.figures)
    outcome = Outcome(STUDY, run, run, result, text, table)
    keep(outcome, folder, has_plots=True)
    return outcome


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.tables = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tables += tag == "table"
        self.sources += [value or "" for name, value in attrs if name == "src"]


def test_the_page_needs_nothing_beside_itself(tmp_path: Path) -> None:
    outcome = made(tmp_path)
    page = to_html(
        [part_of(outcome, AGAIN)], card_rows(run_of("kv-cache").card), summary([outcome]), "x"
    )
    assert "<code>mini-vllm experiment kv-cache --quick</code> (12 s)" in page
    found = _Page()
    found.feed(page)
    assert len(found.sources) == 1
    assert found.sources[0].startswith("data:image/png;base64,")
    assert found.tables == 4  # card, in short, the experiment, the comparison
    assert "This run was noisy: rounds differ" in page


def test_markdown_names_its_plots_and_compares(tmp_path: Path) -> None:
    outcome = made(tmp_path)
    text = to_markdown(
        [part_of(outcome, AGAIN)], card_rows({"cpu": "a|b"}), summary([outcome]), "made by"
    )
    assert "(kv-cache.png)" in text
    assert (tmp_path / "kv-cache.png").is_file()
    assert "### Compared with" in text
    assert "| 1.00 |" in text
    assert "a\\|b" in text


def test_what_stands_in_a_report_is_escaped() -> None:
    part = Part("x", "<b>", ("1 < 2",), (("", Table(("<i>",), (("<u>",),))),), None, "again", 1.0)
    page = to_html([part], [("cpu", "<s>")], Table((), ()), "mini-vllm <p>")
    for tag in ("<b>", "<i>", "<u>", "<s>", "1 < 2"):
        assert tag not in page


def test_what_was_interrupted_takes_the_place_of_nothing_whole(tmp_path: Path) -> None:
    made(tmp_path)
    made(tmp_path, is_interrupted=True)
    assert {path.name for path in tmp_path.glob("*.json")} == {
        "kv-cache.json",
        "kv-cache-interrupted.json",
    }


def test_words_stand_on_the_left_and_numbers_on_the_right(tmp_path: Path) -> None:
    table = Table(("of", "figure", "value"), (("kv-cache", "slowdown", "28.6"), ("b", "c", "-")))
    page = to_html([], [], table, "x")
    assert '<td class="words">slowdown</td><td>28.6</td>' in page
    assert "|---|---|--:|" in to_markdown([], [], table, "x")


def test_no_figure_has_an_exponent(tmp_path: Path) -> None:
    outcome = made(tmp_path)
    outcome.result["headline"] = {"recomputed, s": 11590.07}
    assert summary([outcome]).rows == (("kv-cache", "recomputed, s", "11590"),)


def test_links_to_parts_are_apart_so_that_a_narrow_page_can_break_between_them() -> None:
    parts = [Part(n, n, ("x",), (), None, "again", 1.0) for n in ("kv-cache", "threads")]
    page = to_html(parts, [], Table((), ()), "x")
    assert '<a href="#kv-cache">kv-cache</a> <a href="#threads">' in page
