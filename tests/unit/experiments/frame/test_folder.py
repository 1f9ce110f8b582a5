"""Where results are kept, and what is read of earlier ones."""

import json
import re
from pathlib import Path

import pytest

from experiments.frame.folder import host_name, label_of, read_results, results_folder
from shared.errors import BadRequest
from shared.settings import Settings

RESULT = {"experiment": "threads", "figures": {"rows": []}, "card": {"cpu": "Abacus"}}


def test_a_result_is_read_alone_and_out_of_a_report(tmp_path: Path) -> None:
    alone, report = tmp_path / "threads.json", tmp_path / "report.json"
    alone.write_text(json.dumps(RESULT))
    report.write_text(json.dumps({"experiment": "all", "experiments": {"threads": RESULT}}))
    for path in (alone, report):
        assert read_results(path, ["kv-cache", "threads"]) == {"threads": RESULT}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no result of an experiment"),
        ("[]", "no result of an experiment"),
        ('{"other": 1}', "no result of an experiment"),
        ('{"experiment": 7}', "results of 7, not of threads"),
        ('{"experiments": [7]}', "results of 7, not of threads"),
        ("[" * 100_000, "no result of an experiment"),
        (json.dumps(RESULT | {"figures": None}), "no result of an experiment"),
        (json.dumps(RESULT | {"experiment": "layouts"}), "results of layouts, not of threads"),
    ],
)
def test_what_is_no_result_is_refused_by_name(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(BadRequest, match=f"--compare .*{words}"):
        read_results(path, ["threads"])


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"none\.json: No such file"):
        read_results(tmp_path / "none.json", ["threads"])


def test_a_host_is_named_by_its_cpu_and_cores_so_that_it_can_be_a_folder() -> None:
    assert re.fullmatch(r"[a-z0-9-]+-\d+-cores", host_name())


def test_the_folder_that_was_asked_for_is_made(tmp_path: Path) -> None:
    asked = tmp_path / "a" / "b"
    assert results_folder(asked, Settings(), is_quick=True) == asked
    assert asked.is_dir()


def test_a_folder_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(BadRequest, match="--out"):
        results_folder(file, Settings(), is_quick=False)


def test_a_label_tells_machine_and_day() -> None:
    card = {"cpu": "Abacus", "cores": 2, "made_at": "2026-12-03T06:00:00+00:00"}
    assert label_of(card) == "Abacus, 2 cores, 2026-12-03 06:00"
