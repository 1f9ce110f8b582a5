"""What a worker that was started by hand makes of records."""

import logging
from pathlib import Path

import pytest

from shared.cores import usable_cores
from shared.models import ResolvedModel
from shared.settings import Settings, load_settings
from shared.tuning import save_record, tune_key
from tests.records import make_record
from tests.unit.shared.test_gguf_header import make_gguf
from worker.tuned import use_record


@pytest.fixture
def model(tmp_path: Path) -> ResolvedModel:
    path = tmp_path / "m.gguf"
    numbers = {"block_count": 1, "context_length": 512, "embedding_length": 8}
    path.write_bytes(make_gguf(**numbers, attention__head_count=2, attention__head_count_kv=2))
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
    keep(model, workers=2, threads=300)
    assert use_record(settings_for(model, workers=2), model).threads == 300
    assert use_record(settings_for(model, workers=4), model).threads == 0
    assert use_record(settings_for(model, workers=2, threads=1), model).threads == 1


def test_the_share_of_its_cores_is_taken_without_being_told(model: ResolvedModel) -> None:
    """So that more workers than were meant to be here still share the cores out."""
    num_cores = len(usable_cores().cores)
    keep(model, workers=1, threads=num_cores, slots=24)
    used = use_record(settings_for(model, workers=1), model)
    assert (used.threads, used.slots) == (0, 24)


def test_its_slots_are_not_for_another_number_of_workers(model: ResolvedModel) -> None:
    keep(model, workers=8, slots=2, prefill_chunk_tokens=32)
    used = use_record(settings_for(model, workers=1), model)
    assert (used.slots, used.prefill_chunk_tokens) == (load_settings().slots, 32)
    assert use_record(settings_for(model), model).slots == 2  # how many there are nobody has said


def test_one_that_does_not_fit_into_memory_is_not_used(
    model: ResolvedModel, caplog: pytest.LogCaptureFixture
) -> None:
    """A container may have less than the one that measured."""
    model.path.write_bytes(make_gguf(block_count=4_000_000, context_length=4096, embedding_length=4096,
                                     attention__head_count=2, attention__head_count_kv=2))  # fmt: skip
    keep(model, slots=128)
    assert use_record(settings_for(model), model).slots == load_settings().slots
    assert "is not used" in caplog.text
    assert "memory" in caplog.text


def test_none_is_used_where_that_was_said(model: ResolvedModel) -> None:
    keep(model, slots=24)
    settings = load_settings(model_dir=model.path.parent, tune=False)
    assert use_record(settings, model) == settings
