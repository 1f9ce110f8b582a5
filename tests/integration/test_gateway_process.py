"""``python -m api`` as a process: its port, its ready message, its exit codes."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest


def command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "api", "--port", "0", *flags]


@contextmanager
def running(valkey_url: str) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """The process and its port; ended however the test ends."""
    read_fd, write_fd = os.pipe()
    process = subprocess.Popen(
        command("--redis-url", valkey_url, "--ready-fd", str(write_fd)),
        pass_fds=[write_fd],
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(write_fd)
    try:
        with os.fdopen(read_fd) as ready:
            word, port = ready.read().split()
        assert word == "ready"
        yield process, int(port)
    finally:
        process.kill()
        process.communicate()


def test_it_says_its_port_and_then_answers(valkey_url: str) -> None:
    with running(valkey_url) as (_, port):
        body = httpx.get(f"http://127.0.0.1:{port}/").json()
    assert (body["name"], body["model"]) == ("mini-vllm", "smollm2")


def test_it_bounds_the_head_of_a_request(valkey_url: str) -> None:
    with running(valkey_url) as (_, port):
        response = httpx.get(f"http://127.0.0.1:{port}/", headers={"x": "y" * 32_768})
    assert response.status_code == 431
    assert response.json()["error"]["code"] == "headers_too_large"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_in_time_with_a_stream_open(valkey_url: str, number: signal.Signals) -> None:
    with running(valkey_url) as (process, port), httpx.Client(timeout=20) as http:
        url = f"http://127.0.0.1:{port}"
        job_id = http.post(url + "/generate", json={"prompt": "x"}).json()["job_id"]
        with http.stream("GET", f"{url}/jobs/{job_id}/stream") as response:
            assert response.status_code == 200
            process.send_signal(number)
            _, output = process.communicate(timeout=20)
    assert process.returncode == 0, output
    assert "Traceback" not in output


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*command(), "--port", port], capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 1
    assert done.stderr == f"cannot listen on 127.0.0.1:{port}: Address already in use\n"


def test_a_bad_setting_names_key_and_value() -> None:
    done = subprocess.run(
        [*command(), "--port", "99999"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 78
    assert "MINI_VLLM_PORT='99999'" in done.stderr
    assert done.stderr.count("\n") == 1
