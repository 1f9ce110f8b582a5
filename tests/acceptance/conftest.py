import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.chance import chance
from tests.service import Up

__all__ = ["chance"]


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


@pytest.fixture(scope="module")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """MINI_VLLM_TEST_CACHE keeps the copies, 850 MB; without it each run makes its own."""
    cache = os.environ.get("MINI_VLLM_TEST_CACHE")
    directory = Path(cache) if cache else tmp_path_factory.mktemp("models")
    yield directory
    if not cache:
        shutil.rmtree(directory)
