"""``python -m api`` as a subprocess, on a free port, or on that of one before it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from shared.connection import connect
from tests.links import serve


def command(*flags: str) -> list[str]:
    return [sys.executable, "-m", "api", "--port", "0", *flags]


class GatewayProcess:
    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self._process = process
        self.port = str(port)
        self.url = f"http://127.0.0.1:{port}"

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=20)

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> tuple[int, str]:
        """Its exit code and what it wrote."""
        _, output = self._process.communicate(timeout=20)
        return self._process.returncode, output


@contextmanager
def running(redis_url: str, /, on_port: str = "0", **environment: str) -> Iterator[GatewayProcess]:
    """Ended however the test ends. Jobs are taken as if a worker had been there a moment ago."""
    serve(connect(redis_url), "smollm2")
    with started(redis_url, on_port, **environment) as gateway:
        yield gateway


@contextmanager
def started(redis_url: str, /, on_port: str = "0", **environment: str) -> Iterator[GatewayProcess]:
    """Like ``running``, whatever Redis says to it."""
    read_fd, write_fd = os.pipe()
    process = subprocess.Popen(
        command("--redis-url", redis_url, "--ready-fd", str(write_fd), "--port", on_port),
        env=os.environ | environment,
        pass_fds=[write_fd],
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(write_fd)
    try:
        with os.fdopen(read_fd) as ready:
            word, port = ready.read().split()
        assert word == "ready"
        yield GatewayProcess(process, int(port))
    finally:
        process.kill()
        process.communicate()
