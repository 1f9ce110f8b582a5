"""Pulling from the Hugging Face Hub, offline: from a cache as its client keeps it."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.shared.test_gguf_header import make_gguf

CONTENT = make_gguf(block_count=1) + bytes(1000)
COMMIT = "c" * 40


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """HF_HOME, with one file of a repository in it."""
    repository = tmp_path / "hf" / "hub" / "models--owner--repo"
    blob = repository / "blobs" / hashlib.sha256(CONTENT).hexdigest()
    blob.parent.mkdir(parents=True)
    blob.write_bytes(CONTENT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    entry = repository / "snapshots" / COMMIT / "m.gguf"
    entry.parent.mkdir(parents=True)
    entry.symlink_to(blob)
    return tmp_path / "hf"


def pull(home: Path, source: str) -> tuple[int, str]:
    environment = os.environ | {
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "MINI_VLLM_MODEL_DIR": str(home.parent / "models"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "cli", "model", "pull", source],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def names(home: Path) -> list[str]:
    folder = home.parent / "models"
    return sorted(path.name for path in folder.iterdir())


def test_a_file_of_the_hubs_cache_is_there_without_a_network(home: Path) -> None:
    code, text = pull(home, "hf:owner/repo/m.gguf")
    assert code == 0, text
    model = home.parent / "models" / "m.gguf"
    assert model.read_bytes() == CONTENT
    assert model.is_file() and not model.is_symlink()
    assert names(home) == ["m.gguf"]
    assert "is here already" in pull(home, "hf:owner/repo/m.gguf")[1]


def test_what_the_cache_has_not_is_said_in_words(home: Path) -> None:
    code, text = pull(home, "hf:owner/repo/other.gguf")
    assert code == 1
    assert "HF_HUB_OFFLINE" in text
    assert names(home) == []


def test_a_name_that_the_hub_does_not_know_is_refused(home: Path) -> None:
    code, text = pull(home, "hf:owner/re po/m.gguf")
    assert code == 1
    assert "is no name of the Hub" in text


def test_a_damaged_file_is_not_taken(home: Path) -> None:
    blob = next(home.glob("hub/*/blobs/*"))
    blob.write_bytes(CONTENT[:-1] + b"x")
    code, text = pull(home, "hf:owner/repo/m.gguf")
    assert code == 1
    assert "is damaged" in text
    assert names(home) == []
