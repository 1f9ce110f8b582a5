"""`mini-vllm tune` and what `up` makes of it, with real processes and the real model."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from shared.settings import load_settings
from shared.tuning import TuneRecord, save_record, tune_key
from tests.models import model_path
from tests.service import Up, wait_until

pytestmark = pytest.mark.model


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model directory of its own, with the default model in it."""
    models = tmp_path / "models"
    models.mkdir()
    (models / model_path().name).symlink_to(model_path())
    monkeypatch.setenv("MINI_VLLM_MODEL_DIR", str(models))
    monkeypatch.setenv("MINI_VLLM_HOST_DIR", str(tmp_path / "host"))
    monkeypatch.setenv("MINI_VLLM_CONTEXT_TOKENS", "512")
    return models


def start(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "cli", "tune", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str, code: int = 0) -> tuple[list[str], str]:
    process = start(*arguments)
    out, err = process.communicate(timeout=200)
    assert "Traceback" not in err
    assert process.returncode == code, out + err
    return out.splitlines(), err


def load_of(lines: list[str]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def record_of(home: Path, **fields: object) -> TuneRecord:
    known: dict[str, object] = {
        "key": tune_key(home / model_path().name, home), "kind": "tuned", "model": "smollm2",
        "made_at": time.time(), "workers": 1, "threads": 1, "slots": 3, "prefill_chunk_tokens": 32,
        "weight_format": "as-is", "objective": "throughput", "concurrency": 4, "prompt_tokens": 8,
        "output_tokens": 8, "memory_bytes": 1, "context_tokens": 512, "figures": {},
    }  # fmt: skip
    return TuneRecord.model_validate(known | fields)


def test_a_tune_measures_decides_draws_and_is_kept_until_it_is_cleared(
    home: Path, tmp_path: Path
) -> None:
    plot = tmp_path / "front.svg"
    lines, _ = run(
        *("--formats", "as-is", "--concurrency", "2", "--prompt-tokens", "8"),
        *("--output-tokens", "8", "--budget", "25s", "--plot", str(plot)),
    )
    result = load_of(lines)
    assert result["chosen"]["weight_format"] == "as-is"
    assert any(line.startswith("Chosen for throughput: as-is") for line in lines)
    assert all(c["output_tokens_per_s"] >= 0 for c in result["candidates"])
    assert plot.read_text().lstrip().startswith("<?xml")
    assert "*  smollm2" in "\n".join(run("show")[0])
    assert "removed" in run("clear")[0][0]
    assert "no records" in run("show")[0][0]


def test_ctrl_c_decides_with_what_was_measured_and_leaves_no_process(home: Path) -> None:
    process = start("--formats", "as-is", "--budget", "10m", "--dry-run")
    assert process.stderr
    for line in process.stderr:
        if "tokens/s" in line:
            break
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    result = load_of(out.splitlines())
    assert result["interrupted"] is True
    assert result["chosen"] is not None
    assert result["record"] is None
    # One that was just being started when Ctrl-C came dies by our death, a moment later.
    wait_until(lambda: not any(c.is_running() for c in children), 20, "all trials have ended")


def test_a_killed_tuner_takes_its_trials_along(home: Path) -> None:
    process = start("--formats", "as-is", "--budget", "10m", "--dry-run")
    parent = psutil.Process(process.pid)
    children = wait_until(lambda: parent.children(recursive=True), 60, "a trial runs")
    process.kill()
    process.communicate()
    wait_until(lambda: not any(c.is_running() for c in children), 20, "all trials have ended")


def test_threads_tells_of_one_worker_with_each_number(home: Path) -> None:
    lines, _ = run("threads", "--concurrency", "2", "--prompt-tokens", "8", "--output-tokens", "64")
    counts = [entry["threads"] for entry in load_of(lines)["threads"]]
    assert counts == list(range(1, len(os.sched_getaffinity(0)) + 1))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--memory", "tiny"], "--memory"),
        (["--budget", "1s"], "--budget"),
        (["--plot", "x.gif"], ".svg or .png"),
        (["--trace", "/none"], "--trace /none"),
        (["--memory", "1M"], "no layout fits into memory"),
        (["--model", "nope"], "no model 'nope'"),
        (["--prompt-tokens", "60000"], "context of smollm2"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(home: Path, arguments: list[str], words: str) -> None:
    assert words in run(*arguments, code=1)[1]


def _workers(up: Up) -> list[dict[str, Any]]:
    with up.client() as http:
        return list(http.get("/workers").json()["workers"])


def test_up_uses_a_record_and_says_so_unless_told_otherwise(home: Path, tmp_path: Path) -> None:
    save_record(home, record_of(home))
    up = Up(tmp_path, MINI_VLLM_TUNE="1").wait_ready()
    try:
        assert "uses the tuned record of" in up.output
        (worker,) = _workers(up)
        assert (worker["slots"], worker["threads"]) == (3, 1)
    finally:
        up.stop()
    up = Up(tmp_path, "--workers", "1", MINI_VLLM_TUNE="1", MINI_VLLM_SLOTS="5").wait_ready()
    try:
        assert "explicit: slots, workers and threads" in up.output
        assert _workers(up)[0]["slots"] == 5
    finally:
        up.stop()
    up = Up(tmp_path, "--no-tune", "--workers", "1", MINI_VLLM_TUNE="1").wait_ready()
    try:
        assert "record" not in up.output
        expected = load_settings().slots
        assert _workers(up)[0]["slots"] == expected
    finally:
        up.stop()


def test_up_uses_the_record_of_the_load_that_it_is_asked_for(home: Path, tmp_path: Path) -> None:
    save_record(home, record_of(home, concurrency=16, slots=3))
    save_record(home, record_of(home, concurrency=1, slots=2))
    up = Up(tmp_path, "--concurrency", "1", MINI_VLLM_TUNE="1").wait_ready()
    try:
        assert "for 16 clients is not used" in up.output
        assert "suits MINI_VLLM_TUNE_CONCURRENCY=1 better" in up.output
        assert _workers(up)[0]["slots"] == 2
    finally:
        up.stop()


def test_up_does_not_use_another_machines_record_and_says_why(home: Path, tmp_path: Path) -> None:
    key = tune_key(home / model_path().name, home).model_copy(update={"cpu": "Abacus"})
    save_record(home, record_of(home, key=key))
    up = Up(tmp_path, "--workers", "1", MINI_VLLM_TUNE="1").wait_ready()
    try:
        assert "is not used: the CPU is" in up.output
        assert "and was Abacus" in up.output
    finally:
        up.stop()


def test_up_measures_once_before_its_first_start(home: Path, tmp_path: Path) -> None:
    up = Up(tmp_path, MINI_VLLM_TUNE="1").wait_ready()
    try:
        assert "first start with this model: measuring" in up.output
        assert "uses the quick record" in up.output
    finally:
        up.stop()
    up = Up(tmp_path, MINI_VLLM_TUNE="1").wait_ready()
    try:
        assert "measuring" not in up.output
        assert "uses the quick record" in up.output
    finally:
        up.stop()
