"""`mini-vllm up` as a user runs it: a subprocess with its own directories, cores and port."""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import httpx
import psutil

START_DEADLINE_S = 120.0
COMMAND = [sys.executable, "-m", "cli", "up", "--port", "0"]


def wait_until(condition: Callable[[], Any], deadline_s: float, what: str) -> Any:
    """Polls until the condition holds; its value."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"not within {deadline_s} s: {what}"
        time.sleep(0.02)


class Running(Protocol):
    """A service that tests can reach, however it was started."""

    @property
    def url(self) -> str: ...

    @property
    def redis_url(self) -> str:
        """Where its processes meet."""


class Up:
    """A running `mini-vllm up`. Its output is collected line by line."""

    def __init__(self, folder: Path, *flags: str, **environment: str) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self._queue: queue.Queue[str | None] = queue.Queue()
        defaults = {
            "MINI_VLLM_HOST_DIR": str(folder / "host"),
            "MINI_VLLM_DATA_DIR": str(folder / "data"),
            "MINI_VLLM_CONTEXT_TOKENS": "1024",
        }
        command = [*COMMAND, *flags]
        self.process = subprocess.Popen(
            command,
            env=os.environ | defaults | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.url = ""

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            self._queue.put(self.lines[-1])
        self._queue.put(None)

    def wait_for_line(self, pattern: str, deadline_s: float = START_DEADLINE_S) -> re.Match[str]:
        end = time.monotonic() + deadline_s
        while True:
            try:
                line = self._queue.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no line like {pattern!r} in:\n{self.output}") from None
            assert line is not None, f"ended before a line like {pattern!r}:\n{self.output}"
            if match := re.search(pattern, line):
                return match

    def wait_ready(self) -> "Up":
        self.url = self.wait_for_line(r"^ready: (http://\S+)$").group(1)
        return self

    @property
    def redis_url(self) -> str:
        return str(json.loads((self.folder / "data" / "run.json").read_text())["redis_url"])

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    @property
    def descendants(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, deadline_s: float = 60) -> int:
        code = self.process.wait(timeout=deadline_s)
        self._reader.join(timeout=10)
        return code

    def stop(self) -> None:
        """Ends it if it still runs, and whatever it left."""
        left = self.descendants
        if self.process.poll() is None:
            self.signal(signal.SIGINT)
            try:
                self.process.wait(timeout=45)
            except subprocess.TimeoutExpired:
                self.process.kill()
        for process in left:
            if process.is_running():
                process.kill()
        self.process.wait()
        self._reader.join(timeout=10)
        if self.process.stdout:
            self.process.stdout.close()


def sse_events(response: httpx.Response) -> Any:
    """Yields (event, id, data as text) of a streamed response."""
    event, event_id, data = "", "", ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            event = line[7:]
        elif line.startswith("id: "):
            event_id = line[4:]
        elif line.startswith("data: "):
            data += line[6:]
        elif not line and event:
            yield event, event_id, data
            event, data = "", ""
