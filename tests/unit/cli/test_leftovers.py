import os
import socket
import subprocess
import sys
from typing import Any

import pytest

from cli.leftovers import dead_incarnations
from shared.protocol import WorkerReport, WorkerState, to_wire

HERE = socket.gethostname()


class Reports:
    """What ``dead_incarnations`` asks of Redis. No worker has a heartbeat."""

    def __init__(self, reports: dict[str, str]) -> None:
        self._reports = reports

    def smembers(self, _key: str) -> set[bytes]:
        return {name.encode() for name in self._reports}

    def hget(self, key: str, _field: str) -> str:
        return self._reports[key.rsplit(":", 1)[1]]


def report(host: str, pid: int) -> str:
    return to_wire(
        WorkerReport(
            name="w", incarnation="w", pid=pid, host=host, model="m", state=WorkerState.READY
        )
    )


@pytest.fixture
def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_only_those_are_gone_whose_process_ended_on_this_host(dead_pid: int) -> None:
    """Workers of other hosts may beat again in a moment: Redis has only just come back itself."""
    client: Any = Reports(
        {
            "gone": report(HERE, dead_pid),
            "alive": report(HERE, os.getpid()),
            "elsewhere": report("another-host", dead_pid),
            "odd": "{",
        }
    )
    assert dead_incarnations(client) == ["gone"]
