"""`mini-vllm model prepare`, which runs before workers in containers, with the real model."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.models import ResolvedModel
from shared.settings import load_settings
from shared.tuning import TuneRecord, read_records
from tests.models import model_path
from worker.tuned import use_record

pytestmark = pytest.mark.model


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / model_path().name).symlink_to(model_path())
    return folder


def prepare(models: Path, **settings: str) -> str:
    """What it says, on either output."""
    ours = {"MINI_VLLM_MODEL_DIR": str(models), "MINI_VLLM_HOST_DIR": str(models.parent / "host")}
    given = {f"MINI_VLLM_{name.upper()}": value for name, value in settings.items()}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "cli", "model", "prepare"],
        env=os.environ | ours | given,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def records(models: Path) -> list[TuneRecord]:
    return [record for _, record, _ in read_records(models) if record]


def test_it_measures_once_and_workers_find_what_it_kept(models: Path) -> None:
    said = prepare(models, tune="1", workers="1", context_tokens="512", tune_concurrency="4")
    (record,) = records(models)
    assert f"workers find the {record}: {record.choice}" in said
    assert (record.kind, record.workers, record.concurrency) == ("quick", 1, 4)
    again = prepare(models, tune="1", workers="1", context_tokens="512", tune_concurrency="4")
    assert "measuring" not in again
    assert "workers find the quick record" in again
    settings = load_settings(model_dir=models, tune=True, workers=1, tune_concurrency=4)
    used = use_record(settings, ResolvedModel("smollm2", models / model_path().name))
    assert (used.weight_format, used.slots) == (record.weight_format, record.slots)


def test_it_measures_nothing_where_nobody_wants_it(models: Path) -> None:
    assert "MINI_VLLM_TUNE is off" in prepare(models, tune="0", workers="1")
    assert not records(models)


def test_a_weight_format_that_is_given_is_made_and_not_measured(models: Path) -> None:
    said = prepare(models, tune="1", weight_format="bf16")
    assert "not measured: MINI_VLLM_WEIGHT_FORMAT=bf16 is given" in said
    assert len(list(models.glob("converted/*.bf16.gguf"))) == 1
    assert not records(models)


def test_a_file_of_ones_own_that_is_missing_is_left_to_the_workers(models: Path) -> None:
    assert "nothing is prepared: there is no model '/none.gguf'" in prepare(
        models, model="/none.gguf"
    )
