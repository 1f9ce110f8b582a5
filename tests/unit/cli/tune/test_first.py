"""What is measured for workers that others start."""

from pathlib import Path

import pytest

from cli.tune.candidates import Candidate
from cli.tune.first import prepare_record, settled_layout
from cli.tune.quick import Layout, plan_quick
from shared.models import ResolvedModel
from shared.settings import Settings, load_settings
from shared.tuning import save_record, tune_key
from tests.records import make_record
from tests.unit.shared.test_gguf_header import make_gguf


@pytest.mark.parametrize(
    ("workers", "threads", "cores", "expected"),
    [
        (0, 0, 8, None),
        (2, 0, 8, Layout(2, 4)),
        (3, 0, 8, Layout(3, 2)),
        (2, 1, 8, Layout(2, 1)),
        (0, 2, 8, Layout(4, 2)),
        (2, 0, 1, Layout(1, 1)),  # one of them waits
        (4, 4, 8, Layout(2, 4)),
        (1, 9, 8, Layout(1, 8)),
    ],
)
def test_the_layout_is_that_of_the_settings_as_far_as_cores_go(
    workers: int, threads: int, cores: int, expected: Layout | None
) -> None:
    assert settled_layout(load_settings(workers=workers, threads=threads), cores) == expected


@pytest.fixture
def model(tmp_path: Path) -> ResolvedModel:
    path = tmp_path / "m.gguf"
    numbers = {"block_count": 1, "context_length": 512, "embedding_length": 8}
    heads = {"attention__head_count": 2, "attention__head_count_kv": 2}
    path.write_bytes(make_gguf(general__file_type=3, **numbers, **heads))
    return ResolvedModel("m", path)


def settings_for(model: ResolvedModel, **fields: object) -> Settings:
    folder = model.path.parent
    return load_settings(model_dir=folder, host_dir=folder / "host", tune=True, **fields)


def test_in_a_settled_layout_only_formats_are_told_apart(model: ResolvedModel) -> None:
    _, chosen = plan_quick(settings_for(model, tune_concurrency=24), model, Layout(2, 1))
    assert chosen == [Candidate("as-is", 2, 1, 12), Candidate("bf16", 2, 1, 12)]
    _, chosen = plan_quick(settings_for(model, slots=5), model, Layout(1, 2))
    assert {candidate.slots for candidate in chosen} == {5}


def test_nothing_is_measured_where_a_record_is_there_or_a_format_is_given_or_nobody_wants_it(
    model: ResolvedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model is made up: a trial of it could not end well."""
    folder = model.path.parent
    prepare_record(settings_for(model, weight_format="bf16"), model)
    prepare_record(load_settings(model_dir=folder, tune=False), model)
    save_record(folder, make_record(key=tune_key(model.path, folder)))
    prepare_record(settings_for(model), model)
    given, off, found = capsys.readouterr().err.splitlines()
    assert given == "not measured: MINI_VLLM_WEIGHT_FORMAT=bf16 is given"
    assert off == "not measured: MINI_VLLM_TUNE is off"
    assert found.startswith("workers find the tuned record")


def test_what_cannot_be_measured_fails_nobody(
    model: ResolvedModel, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare_record(settings_for(model, workers=1), model)
    assert "nothing could be measured in so short a time" in capsys.readouterr().err
    assert not list(model.path.parent.glob("tuning/*.json"))
