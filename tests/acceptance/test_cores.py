"""Workers that were started by hand, without a number of threads: they share out two cores."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from shared.connection import connect
from shared.keys import WORKERS, worker_key
from shared.protocol import WorkerReport
from tests.servers import Valkey
from tests.service import wait_until

CORES = sorted(os.sched_getaffinity(0))[:2]
pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")


class Host:
    """Three workers that are there before their Redis is, so that all seek cores at once."""

    def __init__(self, folder: Path, valkey: Valkey) -> None:
        self.host_dir = folder / "host"
        self._client = connect(valkey.url)
        self._environment = os.environ | {
            "MINI_VLLM_HOST_DIR": str(self.host_dir),
            "MINI_VLLM_CONTEXT_TOKENS": "512",
            "MINI_VLLM_WORKERS": "3",
            "MINI_VLLM_REDIS_URL": valkey.url,
        }
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-P", "-m", "worker"],
                env=self._environment,
                preexec_fn=lambda: os.sched_setaffinity(0, CORES),
            )
            for _ in range(3)
        ]

    @property
    def num_present(self) -> int:
        folder = self.host_dir / "workers"
        return len(os.listdir(folder)) if folder.is_dir() else 0

    def reports(self, state: str) -> dict[int, WorkerReport]:
        """Of the processes that live, by pid."""
        members: Any = self._client.smembers(WORKERS)
        raw = [self._client.hget(worker_key(name.decode()), "report") for name in members]
        reports = [WorkerReport.model_validate_json(report) for report in raw if report]
        alive = {process.pid for process in self.processes if process.poll() is None}
        return {r.pid: r for r in reports if r.state == state and r.pid in alive}

    def wait_for(self, num_ready: int, num_waiting: int) -> tuple[list[int], list[int]]:
        """Their pids."""

        def pids() -> tuple[list[int], list[int]] | None:
            ready, waiting = self.reports("ready"), self.reports("waiting")
            is_so = (len(ready), len(waiting)) == (num_ready, num_waiting)
            return (list(ready), list(waiting)) if is_so else None

        found: tuple[list[int], list[int]] = wait_until(
            pids, 120, f"{num_ready} are ready and {num_waiting} wait"
        )
        return found

    def health(self) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-P", "-m", "cli.health", "worker"],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def kill(self, pid: int) -> None:
        process = next(process for process in self.processes if process.pid == pid)
        process.kill()
        process.wait()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    valkey = Valkey()
    host = Host(tmp_path, valkey)
    try:
        wait_until(lambda: host.num_present == 3, 60, "all three are there")
        assert host.health().returncode == 0, "a worker that waits for Redis is healthy"
        valkey.start()
        yield host
    finally:
        for process in host.processes:
            process.kill()
            process.wait()
        valkey.remove()


def has_model(pid: int) -> bool:
    return any(".gguf" in file.path for file in psutil.Process(pid).memory_maps())


def test_two_workers_take_a_core_each_and_the_third_the_one_that_a_kill_frees(host: Host) -> None:
    ready, (third,) = host.wait_for(2, 1)
    cores = {pid: os.sched_getaffinity(pid) for pid in ready}
    assert sorted(core for mask in cores.values() for core in mask) == CORES
    reports = host.reports("ready")
    assert {pid: set(reports[pid].cores) for pid in ready} == cores
    assert [reports[pid].threads for pid in ready] == [1, 1]
    assert [has_model(pid) for pid in (*ready, third)] == [True, True, False]
    waiting = host.reports("waiting")[third]
    assert (waiting.cores, waiting.threads, waiting.slots) == ((), 0, 0)

    host.kill(ready[0])
    now_ready, _ = host.wait_for(2, 0)
    assert sorted(now_ready) == sorted([third, ready[1]])
    assert os.sched_getaffinity(third) == cores[ready[0]]
    assert has_model(third)
    assert host.health().returncode == 0
