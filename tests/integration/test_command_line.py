"""What the command line says when something is wrong: words, an exit code, never a traceback."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from api.keyring import Keyring
from shared.settings import load_settings


def run(*arguments: str | bytes, stdin: bytes = b"") -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "cli", *arguments],
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
        env=os.environ | {"MINI_VLLM_URL": "http://127.0.0.1:1"},
    )
    output = (done.stdout + done.stderr).decode(errors="replace")
    assert "Traceback" not in output
    return done.returncode, output


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["up", "--port", "abc"], 2, "--port"),
        (["up", "--port", "70000"], 1, "MINI_VLLM_PORT=70000"),
        (["up", "--model", "nope"], 1, "no model 'nope'"),
        (["up", "--threads", "4096"], 1, "--threads 4096"),
        (["up", "--redis-url", "foo://x", "--port", "0"], 1, "foo://x"),
        (["up", "--redis-url", "redis://127.0.0.1:1", "--port", "0"], 1, "does not answer"),
        (["up", "--host", "0.0.0.0", "--port", "0"], 1, "--insecure"),
        (["model", "pull", "nope"], 1, "known"),
        (["model", "info", "nope"], 1, "nope"),
        (["generate", "x"], 1, "make up"),
        (["generate", "--url", "http://[::1", "x"], 1, "--url"),
        (["generate", b"\xff"], 1, "UTF-8"),
        (["frobnicate"], 2, "frobnicate"),
    ],
)
def test_what_is_wrong_is_said_in_words(
    tmp_path: Path, arguments: list[str | bytes], code: int, words: str
) -> None:
    if arguments[0] == "up":
        arguments = [*arguments, "--data-dir", str(tmp_path / "data")]
    found, output = run(*arguments)
    assert found == code
    assert words in output


def test_a_data_directory_that_cannot_be_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    code, output = run("up", "--data-dir", str(file))
    assert code == 1
    assert str(file) in output


def test_a_model_directory_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MINI_VLLM_MODEL_DIR", "/proc")  # not even root makes a directory there
    code, output = run("model", "pull", "smollm2")
    assert code == 1
    assert "the model directory /proc cannot be written by user" in output
    assert "MINI_VLLM_MODEL_DIR" in output


def test_a_pull_that_is_told_to_stop_leaves_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as index:  # it never answers
        index.settimeout(60)
        url = f"http://127.0.0.1:{index.getsockname()[1]}/"
        nowhere = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_INDEX_URL": url}
        process = subprocess.Popen(
            [sys.executable, "-m", "cli", "model", "pull"],
            env=os.environ | nowhere | {"MINI_VLLM_MODEL_DIR": str(tmp_path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            index.accept()[0].close()
            assert list(tmp_path.iterdir()), "it has begun"
            process.terminate()
            assert process.wait(30) == 128 + signal.SIGTERM
        finally:
            process.kill()
            process.wait()
    assert not list(tmp_path.iterdir())


def test_a_file_of_ones_own_is_not_fetched() -> None:
    code, output = run("model", "pull", "/models/my.gguf", "--if-known")
    assert code == 0
    assert "/models/my.gguf is none of the known models (smollm2): nothing to fetch" in output


def test_doctor_finds_a_redis_that_is_away() -> None:
    code, output = run("doctor", "--redis-url", "redis://127.0.0.1:1")
    assert code == 1
    assert "does not answer" in output


def test_a_key_and_its_hash_belong_together() -> None:
    code, output = run("key")
    assert code == 0
    key, hashed = (line.split()[1] for line in output.splitlines())
    ring = Keyring.from_settings(load_settings(api_keys=hashed))
    assert ring.identify(key) is not None
