import os
from pathlib import Path

import pytest

from api.live.reports import Reports
from shared.errors import RouteNotFound
from shared.settings import load_settings


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "report.html").write_text(text)


def test_reports_of_all_folders_are_listed_by_name(tmp_path: Path) -> None:
    put(tmp_path / "one", "b & c", "first")
    put(tmp_path / "two", "b & c", "second")
    put(tmp_path / "two", "a", "third")
    (tmp_path / "two/empty").mkdir()
    reports = Reports(tmp_path / "one", tmp_path / "two", tmp_path / "nowhere")
    assert [(link.name, link.href) for link in reports.links()] == [
        ("a", "/dashboard/reports/a/report.html"),
        ("b & c", "/dashboard/reports/b%20%26%20c/report.html"),
    ]
    assert (reports.read("b & c"), reports.read("a")) == (b"first", b"third")


@pytest.mark.parametrize("name", ["", ".", "..", "empty", "../one/x", "two", "/etc"])
def test_what_is_not_listed_is_not_read(tmp_path: Path, name: str) -> None:
    put(tmp_path / "one", "x", "y")
    put(tmp_path / "two", "z", "y")
    (tmp_path / "report.html").write_text("not this one")
    with pytest.raises(RouteNotFound):
        Reports(tmp_path / "two").read(name)


def test_a_folder_whose_name_is_no_text_hides_no_other(tmp_path: Path) -> None:
    put(tmp_path, os.fsdecode(b"caf\xe9"), "x")
    put(tmp_path, "caf\u00e9", "x")
    assert [link.href for link in Reports(tmp_path).links()] == [
        "/dashboard/reports/caf%C3%A9/report.html"
    ]


def test_what_experiments_write_without_a_checkout_is_found(tmp_path: Path) -> None:
    put(tmp_path / "experiments/results", "my-host", "x")
    reports = Reports.from_settings(load_settings(data_dir=tmp_path))
    assert "my-host" in [link.name for link in reports.links()]
