"""Workers of this host that are gone although nobody has noticed yet."""

import os
import socket

from pydantic import ValidationError
from redis import Redis

from shared.keys import WORKERS, worker_key
from shared.protocol import WorkerReport


def dead_incarnations(client: Redis) -> list[str]:
    """Those whose process no longer runs on this host. Of others one cannot know so soon: that their
    heartbeats have lapsed may be Redis' doing, which was away itself; sweepers see to them."""
    members = sorted(as_text(raw) for raw in client.smembers(WORKERS))
    return [name for name in members if _is_gone(client.hget(worker_key(name), "report"))]


def as_text(raw: bytes | str) -> str:
    return raw.decode(errors="replace") if isinstance(raw, bytes) else raw


def _is_gone(report: bytes | str | None) -> bool:
    try:
        worker = WorkerReport.model_validate_json(report or b"")
    except ValidationError:
        return False
    return worker.host == socket.gethostname() and not _runs(worker.pid)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
