"""`mini-vllm top` against a gateway: once, as JSON, and live in a terminal through a restart."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from redis import Redis

from shared.connection import connect
from tests.gateway import PlayedWorker, RunningGateway
from tests.gateway_process import running
from tests.servers import Valkey

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def top(url: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "cli", "top", "--url", url, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
    )


def test_one_frame_goes_into_a_pipe(gateway: RunningGateway, worker: PlayedWorker) -> None:
    with gateway.client() as http:
        body = {"prompt": "x", "user": "no end\u2028of a line\u0085"}
        job_id = http.post("/generate", json=body).raise_for_status().json()["job_id"]
    done = top(gateway.url)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1].startswith("Nobody waits long: 1 job in the queue")
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in done.stdout
    assert any(line.startswith("worker-0  ready") for line in lines)
    assert any(line.startswith(f"{job_id[:8]}  queued") for line in lines)


def test_programs_get_the_view_with_its_verdict(
    gateway: RunningGateway, worker: PlayedWorker
) -> None:
    found = json.loads(top(gateway.url, "--json").stdout)
    assert found["verdict"]["level"] == "good"
    assert [one["name"] for one in found["workers"]] == ["worker-0"]
    assert found["points"] == []


def test_without_workers_users_wait(gateway: RunningGateway) -> None:
    assert "Users wait: there is no worker." in top(gateway.url, "--once").stdout


@pytest.fixture
def closed(valkey_url: str, flushed: Redis) -> Iterator[RunningGateway]:
    gateway = RunningGateway(valkey_url, api_keys="alice", admin_keys="root")
    yield gateway.start()
    gateway.stop()


def test_a_key_sees_what_is_for_it(closed: RunningGateway, flushed: Redis) -> None:
    PlayedWorker(flushed, "worker-0", "smollm2")
    refused = top(closed.url)
    assert (refused.returncode, "API key" in refused.stderr) == (1, True)
    own = top(closed.url, "--api-key", "alice")
    assert "Workers are shown to admin keys only." in own.stdout
    assert "worker-0  ready" in top(closed.url, "--api-key", "root").stdout


def test_where_nothing_answers_that_is_said() -> None:
    done = top("http://127.0.0.1:1")
    assert (done.returncode, done.stdout, "make up" in done.stderr) == (1, "", True)


class Terminal:
    """One of 80 columns and 24 rows with `top` in it."""

    def __init__(self, url: str) -> None:
        self._pid, self._fd = pty.fork()
        if not self._pid:
            size = {"COLUMNS": "80", "LINES": "24", "TERM": "xterm"}
            command = [sys.executable, "-m", "cli", "top", "--url", url]
            os.execve(sys.executable, command, os.environ | size)
        self.shown = ""  #: of late, escapes and all

    def wait_for(self, words: str, deadline_s: float = 30) -> None:
        """In what comes from now on."""
        self.shown, end_s = "", time.monotonic() + deadline_s
        while words not in _ESCAPES.sub("", self.shown):
            assert time.monotonic() < end_s, f"not shown: {words!r}, but:\n{self.shown[-3000:]}"
            self._read()

    def end(self, number: signal.Signals) -> int:
        """Its exit code."""
        self.shown = ""
        os.kill(self._pid, number)
        try:
            while True:
                self._read()
        except OSError:  # the other end is closed
            return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def close(self) -> None:
        os.close(self._fd)

    def _read(self) -> None:
        if select.select([self._fd], [], [], 0.1)[0]:
            self.shown += os.read(self._fd, 65_536).decode(errors="replace")


def test_it_goes_on_after_a_restart_of_the_gateway_and_ends_tidily(valkey: Valkey) -> None:
    PlayedWorker(connect(valkey.url), "worker-0", "smollm2")
    with running(valkey.url) as gateway:
        terminal = Terminal(gateway.url)
        terminal.wait_for("All is well: nobody waits. 1 worker ready")
    terminal.wait_for("Reconnecting; what is below was so ")
    with running(valkey.url, gateway.port):
        terminal.wait_for("All is well: nobody waits. 1 worker ready")
        assert terminal.end(signal.SIGINT) == 0
    terminal.close()
    assert "\x1b[?1049l" in terminal.shown, "the screen from before is back"
    assert "Traceback" not in terminal.shown
