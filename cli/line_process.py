"""A Python process of ours that is asked and answers in lines: it dies with us, whatever ends us."""

import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, Any

from shared.errors import ServiceError


class LineProcess:
    """``error`` is what a process raises that gives no line in time, or ends."""

    def __init__(self, module: str, *arguments: str, error: type[ServiceError]) -> None:
        self._error = error
        self._words: IO[Any] = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "cli.tether", "SIGKILL", str(os.getpid()), "--"),
                *(sys.executable, "-P", "-m", module, *arguments),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            text=True,
            start_new_session=True,  # Ctrl-C is ours
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self._ear = threading.Thread(target=self._hear, daemon=True)
        self._ear.start()

    def send(self, line: str) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._error(self._last_words()) from None

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._ear.join(timeout=5)
        for pipe in (self._process.stdin, self._process.stdout, self._words):
            if pipe:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue

    def line(self, deadline_s: float) -> str:
        try:
            line = self._lines.get(timeout=max(0.0, deadline_s - time.monotonic()))
        except queue.Empty:
            raise self._error("it was not done when the time was over") from None
        if not line:
            self._process.wait()
            raise self._error(self._last_words())
        return line

    def _last_words(self) -> str:
        self._process.wait()
        self._words.seek(0)
        lines = self._words.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"its process ended with code {self._process.returncode}"

    def _hear(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")
