"""What a worker that was started by hand makes of records."""

import logging
from pathlib import Path

import pytest

from shared.models import ResolvedModel
from shared.settings import Settings, load_settings
from shared.tuning import save_record, tune_key
from tests.records import make_record
from worker.tuned import use_record


@pytest.fixture
def model(tmp_path: Path) -> ResolvedModel:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"a model, as far as its hash goes")
    return ResolvedModel("m", path)


def keep(model: ResolvedModel, **fields: object) -> None:
    folder = model.path.parent
    key = tune_key(model.path, folder)
    save_record(folder, make_record(key=key, weight_format="as-is", **fields))


def settings_for(model: ResolvedModel, **fields: object) -> Settings:
    return load_settings(model_dir=model.path.parent, tune=True, **fields)


def test_it_takes_the_record_of_the_load_that_is_asked_for_and_names_the_other(
    model: ResolvedModel, caplog: pytest.LogCaptureFixture
) -> None:
    keep(model, concurrency=1, slots=4)
    keep(model, concurrency=16, slots=24)
    with caplog.at_level(logging.INFO):
        assert use_record(settings_for(model), model).slots == 24
    assert "uses the tuned record of 1970-01-01 00:16 UTC for 16 clients" in caplog.text
    assert "for 1 clients is not used" in caplog.text
    assert use_record(settings_for(model, tune_concurrency=2), model).slots == 4


def test_its_threads_are_used_only_beside_as_many_workers(model: ResolvedModel) -> None:
    keep(model, workers=2, threads=3)
    assert use_record(settings_for(model, workers=2), model).threads == 3
    assert use_record(settings_for(model, workers=4), model).threads == 0
    assert use_record(settings_for(model, workers=2, threads=1), model).threads == 1


def test_none_is_used_where_that_was_said(model: ResolvedModel) -> None:
    keep(model, slots=24)
    settings = load_settings(model_dir=model.path.parent, tune=False)
    assert use_record(settings, model) == settings
