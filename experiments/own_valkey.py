"""A Valkey of an experiment's own: empty, in memory alone, on a unix socket, gone at the end."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redis import Redis

from cli.embedded import server_binary
from experiments.service import tethered
from shared.connection import RedisError, connect

_START_TIMEOUT_S = 20.0


@contextmanager
def own_valkey() -> Iterator[Redis]:
    with tempfile.TemporaryDirectory(prefix="mini-vllm-") as folder:
        socket = Path(folder) / "s"
        command = [str(server_binary()), "--port", "0", "--unixsocket", str(socket)]
        command += ["--save", "", "--appendonly", "no", "--dir", folder]
        server = subprocess.Popen(
            tethered(command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        client = connect(f"unix://{socket}")
        try:
            end_s = time.monotonic() + _START_TIMEOUT_S
            while not _answers(client):
                if server.poll() is not None or time.monotonic() > end_s:
                    raise RuntimeError("valkey-server did not start")
                time.sleep(0.02)
            yield client
        finally:
            client.close()
            server.terminate()
            server.wait()


def url_of(client: Redis) -> str:
    return f"unix://{client.connection_pool.connection_kwargs['path']}"


def _answers(client: Redis) -> bool:
    try:
        return bool(client.ping())
    except RedisError:
        return False
