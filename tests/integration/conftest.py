from collections.abc import Iterator

import httpx
import pytest
from redis import Redis

from shared.connection import connect
from tests.gateway import PlayedWorker, RunningGateway
from tests.servers import Valkey

MODEL = "smollm2"


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    """One Valkey for all tests of a process: a test that uses it starts with FLUSHALL."""
    server = Valkey()
    try:
        yield server.start().url
    finally:
        server.remove()


@pytest.fixture
def valkey() -> Iterator[Valkey]:
    """A Valkey of the test's own, with AOF, which it may stop and start."""
    server = Valkey(appendonly=True)
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture
def flushed(valkey_url: str) -> Iterator[Redis]:
    """A client of the shared Valkey, emptied."""
    client = connect(valkey_url)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def gateway(valkey_url: str, flushed: Redis) -> Iterator[RunningGateway]:
    running = RunningGateway(
        valkey_url, model=MODEL, max_body_bytes=4096, max_wait_s=20, sse_keepalive_s=0.2
    )
    running.start()
    yield running
    running.stop()


@pytest.fixture
def http(gateway: RunningGateway) -> Iterator[httpx.Client]:
    with gateway.client() as client:
        yield client


@pytest.fixture
def worker(flushed: Redis, gateway: RunningGateway) -> PlayedWorker:
    return PlayedWorker(flushed, "worker-0", MODEL)
