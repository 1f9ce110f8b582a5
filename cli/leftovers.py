"""Workers of this host that are gone although nobody has noticed yet."""

import os
import socket

from pydantic import ValidationError
from redis import Redis

from shared.keys import WORKERS, beat_key, worker_key
from shared.protocol import WorkerReport


def dead_incarnations(client: Redis) -> list[str]:
    """Those without a heartbeat, and those whose process no longer runs on this host."""
    dead = []
    for name in sorted(as_text(raw) for raw in client.smembers(WORKERS)):
        report = client.hget(worker_key(name), "report")
        if not client.exists(beat_key(name)) or _is_gone(report):
            dead.append(name)
    return dead


def as_text(raw: bytes | str) -> str:
    return raw.decode() if isinstance(raw, bytes) else raw


def _is_gone(report: bytes | str | None) -> bool:
    try:
        worker = WorkerReport.model_validate_json(report or b"")
    except ValidationError:
        return True
    return worker.host == socket.gethostname() and not _runs(worker.pid)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
