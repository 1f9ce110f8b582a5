"""Workers that cannot start, as real processes: one line, 78, and a gateway that names them."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from shared.connection import connect
from shared.exit_codes import EXIT_CONFIG
from shared.failures import report_failure
from shared.footprint import footprint_of
from shared.gguf_header import read_facts
from shared.keys import FAILURES, WORKERS, worker_key
from shared.protocol import WorkerReport
from tests.gateway_process import started
from tests.models import model_path
from tests.servers import Valkey
from tests.unit.shared.test_gguf_header import make_gguf
from tests.worker_process import run_worker


@pytest.fixture
def server() -> Iterator[Valkey]:
    valkey = Valkey()
    try:
        yield valkey.start()
    finally:
        valkey.remove()


@pytest.fixture
def redis(server: Valkey) -> Iterator[Redis]:
    client = connect(server.url)
    yield client
    client.close()


def why(redis_url: str, model: str) -> tuple[str, list[dict[str, Any]]]:
    """What a gateway process says at /ready, and whom it lists as failed."""
    with started(redis_url, MINI_VLLM_MODEL=model) as gateway, gateway.client() as http:
        error = http.get("/ready").json()["error"]
        failures = http.get("/workers").json()["failures"]
    assert error["code"] == "no_worker_ready"
    return str(error["message"]), failures


def fails(server: Valkey, tmp_path: Path, *flags: str, **environment: str) -> str:
    """The one line of a worker that could not start."""
    environment |= {"MINI_VLLM_HOST_DIR": str(tmp_path / "host")}
    done = run_worker(server.url, "--name", "w", *flags, **environment)
    assert done.returncode == EXIT_CONFIG, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("w: error: ")]
    assert len(lines) == 1
    assert done.stderr.count("\n") == 1, done.stderr
    return lines[0].removeprefix("w: error: ")


def test_a_model_that_is_not_there(server: Valkey, tmp_path: Path) -> None:
    missing = str(tmp_path / "none.gguf")
    line = fails(server, tmp_path, MINI_VLLM_MODEL=missing)
    assert f"there is no model '{missing}'" in line
    message, failures = why(server.url, missing)
    assert message == f"No worker is ready for the model none: w (none) failed: {line}"
    assert [(f["name"], f["host"], f["model"], f["message"]) for f in failures] == [
        ("w", socket.gethostname(), "none", line)
    ]


def test_a_file_that_is_no_model(server: Valkey, tmp_path: Path) -> None:
    text = tmp_path / "text.gguf"
    text.write_text("this is no model")
    line = fails(server, tmp_path, "--model", str(text))
    assert line == f"{text} is not a GGUF file (it does not begin with GGUF)"
    assert f"w (text) failed: {line}" in why(server.url, str(text))[0]


@pytest.mark.model
def test_a_file_that_llama_cpp_refuses(server: Valkey, redis: Redis, tmp_path: Path) -> None:
    odd = tmp_path / "odd.gguf"
    odd.write_bytes(make_gguf(block_count=1, context_length=64, embedding_length=4))
    line = fails(server, tmp_path, "--model", str(odd), "--threads", "1")
    assert line.startswith(f"{odd} cannot be used: ")
    assert f"w (odd) failed: {line}" in why(server.url, str(odd))[0]
    assert redis.smembers(WORKERS) == set(), "it does not stand there as one that loads"


@pytest.mark.parametrize(
    ("setting", "value"), [("MINI_VLLM_SLOTS", "0"), ("MINI_VLLM_THREADS", "512")]
)
def test_a_setting_that_it_cannot_keep(
    server: Valkey, tmp_path: Path, setting: str, value: str
) -> None:
    model = str(model_path())
    line = fails(server, tmp_path, "--model", model, **{setting: value})
    assert setting in line
    assert f"failed: {line}" in why(server.url, model)[0]


@pytest.mark.model
def test_a_chat_template_that_is_missing(server: Valkey, tmp_path: Path) -> None:
    model, name = str(model_path()), "MINI_VLLM_CHAT_TEMPLATE_FILE"
    missing = str(tmp_path / "none.jinja")
    line = fails(server, tmp_path, "--model", model, **{name: missing})
    assert line == f"{name}={missing}: No such file or directory"


def test_where_redis_does_not_answer_the_log_is_all(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        for redis_url in (url, "redis://127.0.0.1:1/0", "redis://no-such-host.invalid/0"):
            done = run_worker(redis_url, "--name", "w", "--model", str(tmp_path / "none.gguf"))
            assert done.returncode == EXIT_CONFIG
            assert done.stderr.count("\n") == 1
            assert "there is no model" in done.stderr


@pytest.mark.model
def test_a_worker_that_becomes_ready_takes_back_what_its_name_said(
    server: Valkey, redis: Redis, tmp_path: Path
) -> None:
    for name in ("w", "another"):
        report_failure(redis, name=name, host="h", model="m", message="it failed")
    with ready_worker(server.url, tmp_path):
        assert redis.hkeys(FAILURES) == [b"another"]
        names: Any = redis.smembers(WORKERS)
        told: Any = redis.hget(worker_key(names.pop().decode()), "report")
    report = WorkerReport.model_validate_json(told)
    facts = read_facts(model_path())
    assert report.kv_cache_bytes == footprint_of(facts, slots=1, context_tokens=256).kv_cache_bytes


@contextmanager
def ready_worker(redis_url: str, tmp_path: Path) -> Iterator[None]:
    read_fd, write_fd = os.pipe()
    flags = ["--name", "w", "--model", str(model_path()), "--threads", "1"]
    environment = {
        "MINI_VLLM_REDIS_URL": redis_url,
        "MINI_VLLM_HOST_DIR": str(tmp_path / "host"),
        "MINI_VLLM_CONTEXT_TOKENS": "256",
        "MINI_VLLM_SLOTS": "1",
    }
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "worker", *flags, "--ready-fd", str(write_fd)],
        env=os.environ | environment,
        stderr=subprocess.DEVNULL,
        pass_fds=[write_fd],
    )
    os.close(write_fd)
    try:
        with os.fdopen(read_fd) as announced:
            assert any(line == "ready\n" for line in announced)
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)
