import re
from pathlib import Path

import pytest
from starlette.datastructures import Headers

from api.page_files import FOLDER, INDEX, PAGE_HEADERS, REPORT_HEADERS, read_page_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "vendor").mkdir()
    (tmp_path / INDEX).write_text("<!doctype html>")
    (tmp_path / "vendor/chart.js").write_text("1")
    (tmp_path / "vendor/chart.LICENSE").write_text("MIT")
    (tmp_path / "notes.md").write_text("not for browsers")
    (tmp_path / ".secret").write_text("x")
    return tmp_path


def test_the_files_that_a_browser_reads_are_there_with_their_types(folder: Path) -> None:
    files = read_page_files(folder)
    assert {name: file.content_type.split(";")[0] for name, file in files.items()} == {
        INDEX: "text/html",
        "vendor/chart.js": "text/javascript",
        "vendor/chart.LICENSE": "text/plain",
    }
    assert read_page_files(folder / "nowhere") == {}


def test_a_file_is_sent_once_and_again_when_it_is_another(folder: Path) -> None:
    file = read_page_files(folder)["vendor/chart.js"]
    first = file.response(Headers())
    assert (first.status_code, first.body) == (200, b"1")
    assert first.headers["cache-control"] == "no-cache"
    assert first.headers["x-content-type-options"] == "nosniff"
    for tag in (file.etag, f'"x", W/{file.etag}'):
        again = file.response(Headers({"if-none-match": tag}))
        assert (again.status_code, again.body) == (304, b"")
        assert again.headers["etag"] == file.etag
    (folder / "vendor/chart.js").write_text("2")
    changed = read_page_files(folder)["vendor/chart.js"]
    assert changed.response(Headers({"if-none-match": file.etag})).status_code == 200


def rules(headers: dict[str, str]) -> dict[str, str]:
    """Of the policy, by name."""
    parts = (rule.strip().partition(" ") for rule in headers["Content-Security-Policy"].split(";"))
    return {name: value for name, _, value in parts}


def test_nothing_runs_that_is_not_a_file_of_ours() -> None:
    page, report = rules(PAGE_HEADERS), rules(REPORT_HEADERS)
    assert page["default-src"] == report["default-src"] == "'none'"
    assert page["script-src"] == page["connect-src"] == page["style-src"] == "'self'"
    assert page["frame-ancestors"] == report["frame-ancestors"] == "'none'"
    assert "sandbox" in report and "allow-scripts" not in report["sandbox"]
    assert not {"script-src", "connect-src"} & report.keys()


def test_all_that_the_page_names_is_served() -> None:
    files = read_page_files(FOLDER)
    page = files[INDEX].body.decode()
    named = re.findall(r'(?:href|src)="dashboard/static/([^"]+)"', page)
    scripts = {name: file.body.decode() for name, file in files.items() if name.endswith(".js")}
    assert len(named) > 2
    for text in scripts.values():
        named += re.findall(r'^import .* from "\./([^"]+)";$', text, flags=re.MULTILINE)
    assert set(named) <= files.keys()
    assert not re.search(r"<script(?! type=\"module\" src=)|<style| style=| on\w+=", page)
