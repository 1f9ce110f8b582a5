"""The Valkey that `up` brings along."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis

from cli.embedded import MAX_SOCKET_PATH_BYTES, EmbeddedValkey
from shared.connection import connect
from tests.service import wait_until


@contextmanager
def running(data_dir: Path) -> Iterator[Redis]:
    valkey = EmbeddedValkey(data_dir)
    process = subprocess.Popen(valkey.command(), pass_fds=[valkey.lock_fd])
    try:
        wait_until(valkey.is_ready, 30, "Valkey answers")
        client = connect(valkey.url)
        yield client
        client.close()
    finally:
        process.terminate()
        process.wait(timeout=30)
        valkey.close()


def test_what_is_written_survives_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        client.set("kept", "yes")
    with running(tmp_path) as client:
        assert client.get("kept") == b"yes"


def test_its_socket_is_for_this_user_only(tmp_path: Path) -> None:
    with running(tmp_path) as client:
        socket = Path(client.connection_pool.connection_kwargs["path"])
        assert stat.S_IMODE(socket.stat().st_mode) == 0o700
        assert client.config_get("port")["port"] == "0"
        assert client.config_get("maxmemory-policy")["maxmemory-policy"] == "noeviction"
        assert client.config_get("appendonly")["appendonly"] == "yes"


def test_a_relative_data_directory_works_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with running(Path("data")) as client:
        assert client.ping()


def test_a_long_data_directory_gets_a_short_socket_path(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    with running(long) as client:
        path = client.connection_pool.connection_kwargs["path"]
        assert len(path) <= MAX_SOCKET_PATH_BYTES
        assert stat.S_IMODE(Path(path).parent.stat().st_mode) == 0o700
        assert client.ping()


def test_a_child_does_not_outlive_its_parent() -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, subprocess, sys, time\n"
            "child = subprocess.Popen([sys.executable, '-m', 'cli.tether', 'SIGKILL',"
            " str(os.getpid()), '--', 'sleep', '600'])\n"
            "print(child.pid, flush=True)\n"
            "time.sleep(600)",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout
    pid = int(parent.stdout.readline())
    wait_until(
        lambda: b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0], 20, "it runs"
    )
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()

    def is_gone() -> bool:
        try:
            return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
        except FileNotFoundError:
            return True

    wait_until(is_gone, 20, "the child is gone")
