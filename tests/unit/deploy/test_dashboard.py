"""The dashboard asks for metrics that there are, and is laid out as Grafana reads it."""

import re
from pathlib import Path

import yaml

from tests.unit.deploy.monitoring import (
    dashboard,
    exported,
    names_in,
    needs_promtool,
    panels,
    queries,
    run_promtool,
)


def test_what_is_asked_for_is_there() -> None:
    asked = set().union(*map(names_in, queries()))
    for variable in dashboard()["templating"]["list"]:
        asked |= names_in(variable.get("definition", ""))
    assert len(asked) > 30
    assert asked - exported() == set()


def test_no_panel_sums_what_every_gateway_tells() -> None:
    most = r"(max|min)( by \([\w, ]+\) )?\("
    for query in queries():
        found = re.findall(r"\bmini_vllm_\w+", query)
        one = re.findall(rf"{most}(\w+\()?mini_vllm_\w+\{{", query)
        assert len(one) == len(found), query


@needs_promtool
def test_every_query_of_the_dashboard_can_be_read(tmp_path: Path) -> None:
    values = {"$__rate_interval": "1m", "$job": "mini-vllm", "$model_name": ".*"}
    exprs = queries()
    for variable, value in values.items():
        exprs = [expr.replace(variable, value) for expr in exprs]
    assert not [expr for expr in exprs if "$" in expr]
    made = [{"record": f"panel_{i}", "expr": expr} for i, expr in enumerate(exprs)]
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": made}]}))
    run_promtool("check", "rules", path)


def test_the_rows_are_the_questions_of_who_is_on_call() -> None:
    rows = [panel["title"] for panel in dashboard()["panels"] if panel["type"] == "row"]
    assert rows[:3] == ["Are users waiting?", "Why?", "What to do"]
    assert [variable["name"] for variable in dashboard()["templating"]["list"]] == [
        *("datasource", "job", "model_name"),
    ]


def test_panels_have_an_id_each_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in panels()]
    assert len(ids) == len(set(ids)) > 30
    taken: dict[tuple[int, int], str] = {}
    for panel in panels():
        place = panel["gridPos"]
        assert place["w"] > 0
        assert place["h"] > 0
        assert place["x"] + place["w"] <= 24, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, (panel["title"], taken[x, y])
                taken[x, y] = panel["title"]


def test_panels_stand_in_the_order_in_which_grafana_fills_rows() -> None:
    """A panel belongs to the row before it: to the one above it, then."""
    heights = [panel["gridPos"]["y"] for panel in dashboard()["panels"]]
    assert heights == sorted(heights)
    for row in (panel for panel in panels() if panel["type"] == "row"):
        assert bool(row["panels"]) == row["collapsed"], "open rows have their panels beside them"


def test_every_panel_asks_the_source_that_was_chosen_and_tells_how_to_read_it() -> None:
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    for panel in panels():
        if panel["type"] in ("row", "text"):
            continue
        assert panel["datasource"] == chosen, panel["title"]
        assert {t["refId"] for t in panel["targets"]} == set("ABCD"[: len(panel["targets"])])
        assert all(target["datasource"] == chosen for target in panel["targets"])
        if panel["type"] != "table":
            assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["description"], panel["title"]
