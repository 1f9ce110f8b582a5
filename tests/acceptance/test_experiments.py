"""`mini-vllm experiment NAME --quick` on the real model: each runs, keeps its result, and its figures can be
true. How fast the machine is is no matter here."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.models import model_path
from tests.service import wait_until

pytestmark = pytest.mark.model


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results go there; the model directory is one of its own, for converted copies."""
    models = tmp_path / "models"
    models.mkdir()
    (models / model_path().name).symlink_to(model_path())
    monkeypatch.setenv("MINI_VLLM_MODEL_DIR", str(models))
    monkeypatch.setenv("MINI_VLLM_HOST_DIR", str(tmp_path / "host"))
    return tmp_path / "out"


def start(*arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "cli", "experiment", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: object, code: int = 0) -> tuple[str, str]:
    process = start(*arguments)
    out, err = process.communicate(timeout=110)
    assert "Traceback" not in err
    assert process.returncode == code, out + err
    return out, err


def result_of(name: str, out: Path, *arguments: object) -> dict[str, Any]:
    """Of a quick run without plots; what is printed last is what is kept."""
    stdout, _ = run(name, "--quick", "--no-plots", "--out", out, *arguments)
    printed: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    kept: dict[str, Any] = json.loads((out / f"{name}.json").read_text())
    assert printed["figures"] == kept["figures"]
    assert kept["samples"]["kept"]
    assert kept["card"]["read_gb_per_s"]["1"] > 0.1
    assert "LLAMAFILE" in kept["card"]["features"]
    assert printed["text"].split(".")[0] in " ".join(stdout.split())
    figures: dict[str, Any] = kept["figures"]
    return figures


def test_kv_cache_gives_the_same_tokens_with_it_and_without(out: Path) -> None:
    stdout, _ = run("kv-cache", "--quick", "--lengths", "4,8", "--out", out)
    result = json.loads(stdout.splitlines()[-1])
    figures = result["figures"]
    assert figures["is_exact_expected"] is True
    assert figures["first_differences"] == {"56": None, "2": None, "7": None, "24": None}
    assert [row["tokens"] for row in figures["rows"]] == [4, 8]
    assert all(row["slowdown"] > 1 for row in figures["rows"])
    assert {path.suffix for path in out.iterdir()} == {".json", ".png", ".svg"}


def test_cache_complexity_fits_both_costs(out: Path) -> None:
    figures = result_of("cache-complexity", out, "--max-tokens", "224")
    assert figures["lengths"][-1] == 224
    assert figures["slowdown"][-1] > figures["slowdown"][0] > 1
    for way in ("cached", "recomputed"):
        assert 0.9 < figures[way]["fit"]["r2"] <= 1
    assert figures["work"]["cached"][-1]["tokens"] == 239


def test_threads_are_measured_at_rest_and_beside_a_neighbour(out: Path) -> None:
    figures = result_of("threads", out, "--threads", "1,2")
    row = figures["rows"][0]
    # Of a 4-bit file a lone row is padded where attention is split, which it is not at this position.
    assert figures["pads"] == {"1": False, "2": False}
    assert 0 < row["bandwidth_percent"] < 150
    assert row["decode_tokens_per_s_none"]["median"] > 0
    assert row["decode_tokens_per_s_busy"]["median"] > 0


def test_batching_has_a_roofline_beside_its_steps(out: Path) -> None:
    figures = result_of("batching", out, "--sequences", "1,2,4", "--threads", "1")
    rows = figures["rows"]
    assert [row["sequences"] for row in rows] == [1, 2, 4]
    # Whether a step keeps its bound depends on who else was there: tests/unit has that, of recorded data.
    bounds_ms = [row["bound_ms"] for row in rows]
    assert 0 < bounds_ms[0] <= bounds_ms[1] <= bounds_ms[2]
    assert all(row["step_ms"]["median"] > 0 for row in rows)
    assert figures["peak_gflop_per_s"] > 0


def test_a_prefix_gives_the_same_tokens_wherever_it_comes_from(out: Path) -> None:
    figures = result_of("prefix-cache", out, "--prefixes", "64,128")
    assert figures["is_exact"] is True
    assert [row["prefix"] for row in figures["rows"]] == [64, 128]
    assert figures["rows"][1]["state_mb"] == pytest.approx(
        2 * figures["rows"][0]["state_mb"], rel=0.1
    )


def test_formats_are_made_measured_and_chosen_among(out: Path) -> None:
    figures = result_of("quantization", out, "--formats", "q4_0")
    own, lossy = figures["rows"]
    assert (own["format"], lossy["format"]) == ("as-is", "q4_0")
    assert own["kl_mean"] == 0
    assert lossy["kl_mean"] > 0.01
    assert lossy["file_mb"] < own["file_mb"]
    assert figures["chat"] == figures["batch"] == "as-is"


def test_layouts_are_measured_at_rest_and_beside_a_neighbour(out: Path) -> None:
    figures = result_of("layouts", out, "--clients", "2")
    assert {row["layout"] for row in figures["rows"]} >= {f"1 x {figures['cores']}"}
    assert all(row["none"]["output_tokens_per_s"]["median"] > 0 for row in figures["rows"])


def test_ctrl_c_keeps_what_was_measured_and_leaves_no_process(out: Path) -> None:
    process = start("prefix-cache", "--rounds", "50", "--prefixes", "16,32", "--out", out)
    assert process.stderr
    for line in process.stderr:
        if "round 2 of 50" in line:
            break
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    stdout, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    result = json.loads(stdout.splitlines()[-1])
    assert result["is_interrupted"] is True
    assert [row["prefix"] for row in result["figures"]["rows"]] == [16, 32]
    assert (out / "prefix-cache-interrupted.json").is_file()
    assert not (out / "prefix-cache.json").exists()
    assert not any(child.is_running() for child in children)


def test_a_killed_experiment_takes_its_probe_along(out: Path) -> None:
    process = start("kv-cache", "--rounds", "50", "--no-plots", "--out", out)
    assert process.stderr
    for line in process.stderr:
        if "round 1 of 50" in line:
            break
    children = psutil.Process(process.pid).children(recursive=True)
    assert children
    process.kill()
    process.communicate()
    wait_until(lambda: not any(c.is_running() for c in children), 20, "the probe has ended")


def test_another_run_is_told_and_drawn_beside(out: Path) -> None:
    result_of("batching", out, "--sequences", "1,2", "--threads", "1")
    stdout, _ = run(
        *("batching", "--quick", "--sequences", "1,2", "--threads", "1"),
        *("--out", out / "again", "--compare", out / "batching.json"),
    )
    assert "compared with" in stdout
    assert "light grey" in (out / "again" / "batching.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["kv-cache", "--model", "nope"], "no model 'nope'"),
        (["kv-cache", "--lengths", "x"], "--lengths: 'x' is no list"),
        (["kv-cache", "--lengths", "9000"], "--lengths: 9016 tokens are needed, and the context"),
        (["cache-complexity", "--max-tokens", "60000"], "--max-tokens: 60016 tokens are needed"),
        (["cache-complexity", "--max-tokens", "9"], "--max-tokens: 9 are too few"),
        (["threads", "--threads", "0"], "--threads: 0 is less than 1"),
        (["threads", "--threads", "5000"], "--threads: 5000, and this machine has"),
        (["batching", "--threads", "5000"], "--threads: 5000, and this machine has"),
        (["batching", "--sequences", "1,999"], "--sequences: 999 is more than 128"),
        (["batching", "--sequences", "4"], "--sequences: 4 alone cannot be compared"),
        (["prefix-cache", "--prefixes", "8190"], "--prefixes: 8214 tokens are needed"),
        (["quantization", "--formats", "q9"], "no weight format 'q9'"),
        (["layouts", "--clients", "999"], "--clients: 999 is more than 256"),
        (["all", "--compare", "/none.json"], "--compare /none.json: No such file"),
        (["all", "--out", "/proc/none"], "--out /proc/none"),
    ],
)
def test_what_cannot_be_measured_is_said_before(
    out: Path, arguments: list[str], words: str
) -> None:
    stdout, err = run(*arguments, code=1)
    assert words in err
    assert "measured on" not in stdout
