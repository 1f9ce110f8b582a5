"""Converting the real model: what is made, what is left behind, and who waits for whom."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from cli.convert import convert
from shared.converted import CONVERTED_FOLDER, converted_path
from shared.errors import ModelUnusable, SetupError
from shared.gguf_header import read_facts
from shared.weight_formats import WEIGHT_FORMATS
from tests.models import model_path

COMMAND = [sys.executable, "-m", "cli", "model", "convert", str(model_path())]


def environment(model_dir: Path) -> dict[str, str]:
    return os.environ | {"MINI_VLLM_MODEL_DIR": str(model_dir)}


def files(model_dir: Path) -> list[str]:
    return sorted(path.name for path in (model_dir / CONVERTED_FOLDER).iterdir() if path.is_file())


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A conversion that writes already: to f32, which takes longest."""
    # A shell in the background has SIGINT ignored, and so would its children.
    process = subprocess.Popen(
        [*COMMAND, "--to", "f32"],
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    partial = (
        tmp_path / CONVERTED_FOLDER / f".{converted_path(model_path(), 'f32', tmp_path).name}.part"
    )
    end_s = monotonic() + 60
    while not (partial.exists() and partial.stat().st_size > 1_000_000):
        assert process.poll() is None, "it has ended before it was looked at"
        assert monotonic() < end_s
        sleep(0.001)
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("to", ["bf16", "q4_0"])
def test_a_copy_is_of_its_format_and_made_once(to: str, tmp_path: Path) -> None:
    shown: list[tuple[int, int]] = []
    path = convert(model_path(), to, tmp_path, progress=lambda *sizes: shown.append(sizes))
    facts = read_facts(path)
    assert facts.file_type == WEIGHT_FORMATS[to].file_type
    assert facts.num_parameters == read_facts(model_path()).num_parameters
    assert shown[-1][0] == path.stat().st_size
    assert shown[-1][1] == pytest.approx(path.stat().st_size, rel=0.05)
    made_ns = path.stat().st_mtime_ns
    assert convert(model_path(), to.upper(), tmp_path) == path
    assert path.stat().st_mtime_ns == made_ns
    assert files(tmp_path) == [path.name]


def test_the_format_that_the_file_has_needs_no_copy(tmp_path: Path) -> None:
    assert convert(model_path(), "q4_1", tmp_path) == model_path()
    assert not (tmp_path / CONVERTED_FOLDER).exists()


def test_two_that_convert_at_once_make_one_copy(tmp_path: Path) -> None:
    both = [
        subprocess.Popen(
            [*COMMAND, "--to", "q4_0"], env=environment(tmp_path), stderr=subprocess.DEVNULL
        )
        for _ in range(2)
    ]
    assert [process.wait(120) for process in both] == [0, 0]
    assert files(tmp_path) == [converted_path(model_path(), "q4_0", tmp_path).name]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_that_is_ended_leaves_nothing_behind(
    begun: "subprocess.Popen[bytes]", number: signal.Signals, tmp_path: Path
) -> None:
    begun.send_signal(number)
    assert begun.wait(30) != 0
    assert files(tmp_path) == []
    assert begun.stderr is not None
    assert b"Traceback" not in begun.stderr.read()


def test_what_a_killed_one_left_is_removed_by_the_next(
    begun: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    begun.kill()
    begun.wait(30)
    assert len(files(tmp_path)) == 1
    path = convert(model_path(), "q4_0", tmp_path)
    end_s = monotonic() + 30
    while files(tmp_path) != [path.name]:  # the killed one's child may take a moment to die
        assert monotonic() < end_s
        convert(model_path(), "bf16", tmp_path).unlink()


def test_a_disk_without_room_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"100 MB free and about 339 MB are needed"):
        convert(model_path(), "bf16", tmp_path, free_bytes=100_000_000)
    assert files(tmp_path) == []


def test_a_disk_that_fills_up_leaves_nothing_behind(tmp_path: Path) -> None:
    # A limit of the size of files is what a full disk is: a write that fails.
    limited = ["bash", "-c", 'ulimit -f 20000; exec "$@"', "-", *COMMAND, "--to", "bf16"]
    ended = subprocess.run(limited, env=environment(tmp_path), capture_output=True, timeout=120)
    assert ended.returncode == 1
    assert b"could not be converted to bf16" in ended.stderr
    assert b"Traceback" not in ended.stderr
    assert files(tmp_path) == []


def test_a_file_that_is_cut_short_is_said_to_be_unusable(tmp_path: Path) -> None:
    source = tmp_path / "cut.gguf"
    source.write_bytes(model_path().read_bytes()[:50_000_000])
    with pytest.raises(ModelUnusable, match=r"cut\.gguf could not be converted to bf16"):
        convert(source, "bf16", tmp_path)
    assert files(tmp_path) == []
