"""The processes of a running `up`, to be struck: by name, by the job they hold, and all there are."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from shared.connection import connect
from shared.keys import WORKERS, beat_key, job_key, worker_key
from shared.protocol import WorkerReport, WorkerState
from tests.service import Up, wait_until

READY_DEADLINE_S = 90.0


def strike(pid: int, number: signal.Signals) -> None:
    """What is gone already needs no stroke."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until_gone(pid: int, deadline_s: float = 60) -> None:
    wait_until(lambda: not is_running(pid), deadline_s, f"process {pid} ends")


def gateway_pid(up: Up) -> int:
    """Asked until it is there: for a moment after its start it is another program."""

    def find() -> int | None:
        for process in up.descendants:
            with suppress(psutil.NoSuchProcess):
                if process.cmdline()[3:4] == ["api"]:
                    return process.pid
        return None

    pid: int = wait_until(find, READY_DEADLINE_S, "the gateway runs")
    return pid


def wait_for_workers(up: Up, count: int = 2) -> list[int]:
    """Until so many are ready; their pids, by name."""

    def ready() -> list[int] | None:
        pids = [r.pid for r in _live_workers(up) if r.state is WorkerState.READY]
        return pids if len(pids) == count and all(map(is_running, pids)) else None

    pids: list[int] = wait_until(ready, READY_DEADLINE_S, f"{count} workers are ready")
    return pids


def _live_workers(up: Up) -> list[WorkerReport]:
    with connect(up.redis_url) as redis:
        names: Any = redis.smembers(WORKERS)
        raw: list[Any] = [
            redis.hget(worker_key(name.decode()), "report")
            for name in sorted(names)
            if redis.exists(beat_key(name.decode()))
        ]
    return [WorkerReport.model_validate_json(report) for report in raw if report]


def holder_of(up: Up, job_id: str) -> tuple[int, int] | None:
    """Attempt and pid of the worker that runs the job; ``None`` while none does."""
    with connect(up.redis_url) as redis:
        fields: Any = redis.hmget(job_key(job_id), "attempt", "worker", "status")
        attempt, worker, status = fields
        if status != b"running":
            return None
        report: Any = redis.hget(worker_key(worker.decode()), "report")
    return (int(attempt), WorkerReport.model_validate_json(report).pid) if report else None


def has_ended(up: Up, job_id: str) -> bool:
    with connect(up.redis_url) as redis:
        return bool(redis.hexists(job_key(job_id), "end"))


def processes_of(folder: Path) -> list[psutil.Process]:
    """All that were started for an `up` in this folder, orphans too: they inherit its environment."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            is_ours = process.environ().get("MINI_VLLM_HOST_DIR") == str(folder / "host")
            if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def assert_nothing_is_left(folder: Path) -> None:
    left = [(process.pid, process.name()) for process in processes_of(folder)]
    assert not left, f"processes left behind: {left}"


def stop_in_order(up: Up) -> None:
    up.signal(signal.SIGTERM)
    assert up.wait() == 0, up.output
    assert_nothing_is_left(up.folder)
