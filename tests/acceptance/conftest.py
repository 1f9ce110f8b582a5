import os
import random
import secrets
from collections.abc import Iterator

import httpx
import pytest

from tests.service import Up

CHAOS_SEED = os.environ.get("CHAOS_SEED") or str(secrets.randbelow(2**32))


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Two one-thread workers where there are two cores, shared by the tests of a session."""
    up = Up(tmp_path_factory.mktemp("up"), "--workers", "2", "--threads", "1")
    try:
        yield up.wait_ready()
    finally:
        up.stop()


@pytest.fixture
def client(service: Up) -> Iterator[httpx.Client]:
    with service.client() as client:
        yield client


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """What a test draws with: `CHAOS_SEED` has it draw the same again."""
    print(f"CHAOS_SEED={CHAOS_SEED}")
    return random.Random(f"{CHAOS_SEED} {request.node.name}")
