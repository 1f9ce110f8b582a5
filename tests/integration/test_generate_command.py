"""`mini-vllm generate` against a gateway: keys, and a service that is busy for a while."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from redis import Redis

from shared.keys import SERVED
from tests.gateway import PlayedWorker, RunningGateway
from tests.links import serve
from tests.servers import wait_for


@pytest.fixture
def closed(valkey_url: str, flushed: Redis) -> Iterator[RunningGateway]:
    gateway = RunningGateway(valkey_url, api_keys="alice")
    yield gateway.start()
    gateway.stop()


def generate(gateway: RunningGateway, *flags: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "cli", "generate", "x", "--url", gateway.url, *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_without_its_key_it_says_what_is_missing(closed: RunningGateway) -> None:
    output, errors = generate(closed).communicate(timeout=30)
    assert output == ""
    assert "API key" in errors


def test_with_its_key_it_prints_the_answer(closed: RunningGateway, flushed: Redis) -> None:
    worker = PlayedWorker(flushed, "worker-0", "smollm2")
    process = generate(closed, "--api-key", "alice")
    worker.play("so ", "be it")
    output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, "so be it\n")


def test_it_comes_again_until_the_service_takes_the_job(
    closed: RunningGateway, flushed: Redis
) -> None:
    flushed.delete(SERVED)
    process = generate(closed, "--api-key", "alice")
    assert process.stderr is not None
    assert "Trying again" in process.stderr.readline()
    serve(flushed, "smollm2")
    worker = PlayedWorker(flushed, "worker-0", "smollm2")
    wait_for(lambda: flushed.llen("rq:queue:smollm2:normal"), "the job is taken")
    worker.play("yes")
    output, _ = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, "yes\n")
