"""`mini-vllm up` in a directory of its own, on a free port; nothing of it is left afterwards."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import psutil

from shared.errors import SetupError

START_TIMEOUT_S = 180.0
#: Beyond the drain timeout of the workers.
_STOP_TIMEOUT_S = 60.0


def tethered(command: list[str]) -> list[str]:
    """However the experiment ends, the command is told to end as well."""
    tether = [sys.executable, "-m", "cli.tether", "SIGTERM", str(os.getpid())]
    return [*tether, "--", *command]


class Service:
    """``on_line`` gets each line of its log and when it came (monotonic), in a thread."""

    def __init__(
        self,
        folder: Path,
        *,
        workers: int,
        model: str = "smollm2",
        on_line: Callable[[float, str], None] | None = None,
        **settings: object,
    ) -> None:
        """``settings`` are those of shared/settings.py."""
        self._on_line = on_line
        self._last_lines: deque[str] = deque(maxlen=30)
        self._ready = Event()
        self.url = self.redis_url = ""
        environment = {f"MINI_VLLM_{name.upper()}": str(v) for name, v in settings.items()}
        flags = ["--port", "0", "--workers", str(workers), "--threads", "1", "--model", model]
        self.process = subprocess.Popen(
            tethered(
                [sys.executable, "-m", "cli", "up", "--data-dir", str(folder / "data"), *flags]
            ),
            env=os.environ | {"MINI_VLLM_HOST_DIR": str(folder / "host")} | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._ears = Thread(target=self._hear, daemon=True)
        self._ears.start()
        self._ready.wait(START_TIMEOUT_S)
        if not self.url:
            self.stop()
            raise SetupError("the service did not start:\n" + "\n".join(self._last_lines))
        self.redis_url = json.loads((folder / "data/run.json").read_text())["redis_url"]

    def _hear(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            now_s = time.monotonic()
            self._last_lines.append(line.rstrip("\n"))
            if line.startswith("ready: "):
                self.url = line.split()[1]
                self._ready.set()
            if self._on_line:
                self._on_line(now_s, line)
        self._ready.set()

    def pids(self) -> dict[str, int]:
        """Of what runs now: ``gateway``, ``redis``, ``worker-0``, ..."""
        found = {}
        for child in psutil.Process(self.process.pid).children():
            try:
                command = child.cmdline()
            except psutil.Error:
                continue
            if "--name" in command:
                found[command[command.index("--name") + 1]] = child.pid
            elif "api" in command:
                found["gateway"] = child.pid
            elif command and "valkey-server" in command[0]:
                found["redis"] = child.pid
        return found

    def stop(self) -> None:
        """In order; kills what is left after that."""
        left = psutil.Process(self.process.pid).children(recursive=True)
        self.process.terminate()
        try:
            self.process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for process in left:
            if process.is_running():
                process.kill()
        self._ears.join(timeout=10)


@contextmanager
def running(
    *,
    workers: int,
    model: str = "smollm2",
    on_line: Callable[[float, str], None] | None = None,
    **settings: object,
) -> Iterator[Service]:
    with tempfile.TemporaryDirectory(prefix="mini-vllm-") as folder:
        service = Service(Path(folder), workers=workers, model=model, on_line=on_line, **settings)
        try:
            yield service
        finally:
            service.stop()
