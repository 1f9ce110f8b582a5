"""`mini-vllm model list` and `rm`, on a model directory of made-up files."""

import mmap
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.converted import converted_path
from tests.unit.shared.test_gguf_header import make_gguf

Q4_1, Q4_0, BF16 = 3, 2, 32


def run(model_dir: Path, *arguments: str, stdin: str = "") -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "cli", "model", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"MINI_VLLM_MODEL_DIR": str(model_dir), "COLUMNS": "200"},
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def add_model(path: Path, file_type: int, size: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(make_gguf(general__file_type=file_type, block_count=size))
    return path


def add_copy(source: Path, to: str, file_type: int, model_dir: Path) -> Path:
    return add_model(converted_path(source, to, model_dir), file_type)


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    """Two models; one has two copies, and there is a copy of what is not here."""
    folder = tmp_path / "models"
    tiny, _ = add_model(folder / "tiny.gguf", Q4_1), add_model(folder / "other.gguf", BF16, size=2)
    add_copy(tiny, "bf16", BF16, folder)
    add_copy(tiny, "q4_0", Q4_0, folder)
    gone = add_model(tmp_path / "gone.gguf", Q4_1, size=3)
    add_copy(gone, "bf16", BF16, folder)
    return folder


def test_the_list_says_which_files_are_copies_of_which(model_dir: Path) -> None:
    _, text = run(model_dir, "list")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    tiny = next(i for i, line in enumerate(lines) if line.startswith("tiny q4_1"))
    assert lines[tiny + 1].startswith("as bf16 bf16")
    assert lines[tiny + 1].endswith("converted copy of tiny")
    assert lines[tiny + 2].startswith("as q4_0 q4_0")
    assert any(line.startswith("other bf16") for line in lines)
    assert any(line.endswith("copy of a gone.gguf that is not here") for line in lines)
    assert sum("copy of tiny" in line for line in lines) == 2


def test_a_model_goes_with_its_copies_once_it_is_confirmed(model_dir: Path) -> None:
    code, text = run(model_dir, "rm", "tiny", stdin="n\n")
    assert code == 1
    assert "remove 3 files" in text
    assert len(list(model_dir.rglob("*.gguf"))) == 5
    code, text = run(model_dir, "rm", "tiny", stdin="y\n")
    assert code == 0
    assert "3 files removed" in text
    left = sorted(path.name.split(".")[0] for path in model_dir.rglob("*.gguf"))
    assert left == ["gone", "other"]


def test_copies_go_alone_of_one_model_or_of_all(model_dir: Path) -> None:
    assert run(model_dir, "rm", "tiny", "--converted", "--yes")[0] == 0
    left = sorted(path.name.split(".")[0] for path in model_dir.rglob("*.gguf"))
    assert left == ["gone", "other", "tiny"]
    assert run(model_dir, "rm", "--converted", "--yes")[0] == 0
    left = sorted(path.name for path in model_dir.rglob("*.gguf"))
    assert left == ["other.gguf", "tiny.gguf"]
    assert "nothing to remove" in run(model_dir, "rm", "--converted", "--yes")[1]


def test_a_single_copy_goes_by_its_path(model_dir: Path) -> None:
    copy = next((model_dir / "converted").glob("tiny*.bf16.gguf"))
    assert run(model_dir, "rm", str(copy), "--yes")[0] == 0
    assert not copy.exists()
    assert (model_dir / "tiny.gguf").exists()


def test_nothing_outside_the_model_directory_is_removed(model_dir: Path, tmp_path: Path) -> None:
    outside = tmp_path / "gone.gguf"
    for name in (str(outside), str(model_dir / ".." / "gone.gguf")):
        code, text = run(model_dir, "rm", name, "--yes")
        assert code == 1
        assert "is not in the model directory" in text
    (model_dir / "link.gguf").symlink_to(outside)
    assert run(model_dir, "rm", "link", "--yes")[0] == 0
    assert outside.exists()
    assert not (model_dir / "link.gguf").is_symlink()


def test_a_file_that_a_process_has_mapped_is_kept(model_dir: Path) -> None:
    path = model_dir / "tiny.gguf"
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
        code, text = run(model_dir, "rm", "tiny", "--yes")
    assert code == 1
    assert str(os.getpid()) in text
    assert (model_dir / "tiny.gguf").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rm"], "--converted"),
        (["rm", "nothing"], "nothing"),
        (["rm", "../gone"], "no model"),
        (["convert", "tiny", "--to", "q9"], "--to: there is no weight format 'q9'"),
        (["convert", "nothing", "--to", "bf16"], "no model 'nothing'"),
        (["convert", "tiny", "--to", "q8_0"], "could not be converted"),
    ],
)
def test_what_cannot_be_done_is_said(model_dir: Path, arguments: list[str], words: str) -> None:
    code, text = run(model_dir, *arguments)
    assert code != 0
    assert words in text
