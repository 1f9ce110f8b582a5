"""What is said of a record that was kept."""

from pathlib import Path

from cli.tune.run import who_uses
from shared.settings import load_settings
from shared.tuning import save_record
from tests.records import make_record


def test_the_only_record_is_used(tmp_path: Path) -> None:
    record = make_record(concurrency=1)
    save_record(tmp_path, record)
    assert who_uses(record, load_settings(model_dir=tmp_path)) == "`up` uses it from now on"


def test_one_of_another_load_is_used_by_who_asks_for_it(tmp_path: Path) -> None:
    usual, lone = make_record(concurrency=16), make_record(concurrency=1)
    for record in (usual, lone):
        save_record(tmp_path, record)
    settings = load_settings(model_dir=tmp_path)
    words = who_uses(lone, settings)
    assert words.startswith("`up --concurrency 1` uses it, and `up` alone the tuned record")
    assert words.endswith("for 16 clients")
    assert who_uses(usual, settings) == "`up` uses it from now on"
