"""`mini-vllm model verify` on real models: an upcast is the same model, another model is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.gemma import gemma_path
from tests.models import model_as, model_path


def verify(*arguments: object) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, "-m", "cli", "model", "verify", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


def compare(*arguments: object) -> dict[str, Any]:
    done = verify(*arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_an_upcast_is_told_from_what_loses_quality(model_directory: Path) -> None:
    upcast = compare(model_path(), model_as("BF16", model_directory), "--chunks", 2)
    lossy = compare(model_path(), model_as("Q4_0", model_directory), "--chunks", 2)
    assert upcast["tokens"] == lossy["tokens"] == 2 * 255
    assert upcast["b"]["format"] == "bf16"
    assert abs(upcast["perplexity_b"] / upcast["perplexity_a"] - 1) < 0.03
    assert upcast["kl_mean"] < 0.02 < lossy["kl_mean"]
    assert upcast["top_agreement"] > 0.9 > lossy["top_agreement"]


def test_a_file_compared_with_itself_does_not_diverge() -> None:
    found = compare(model_path(), model_path(), "--chunks", 1)
    assert (found["kl_mean"], found["top_agreement"]) == (0, 1)
    assert found["perplexity_a"] == found["perplexity_b"]


def test_what_cannot_be_compared_is_refused_in_words(tmp_path: Path, model_directory: Path) -> None:
    done = verify(model_path(), gemma_path(model_directory))
    assert done.returncode == 1
    assert "different vocabularies" in done.stderr
    short = tmp_path / "short.txt"
    short.write_text("too short")
    assert "at least 512 are needed" in verify(model_path(), model_path(), "--text", short).stderr
    short.write_bytes(b"\xff\xfe\x00")
    assert "no UTF-8 text" in verify(model_path(), model_path(), "--text", short).stderr
    missing = verify(model_path(), model_path(), "--text", tmp_path / "none.txt")
    assert "cannot be read: No such file" in missing.stderr
    assert verify(model_path(), "nothing").returncode == 1
