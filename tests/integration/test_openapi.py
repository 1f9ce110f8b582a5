"""schemathesis reads the gateway's OpenAPI document and sends what it allows, and what it does not.

``MINI_VLLM_TEST_SEED`` and ``MINI_VLLM_TEST_EXAMPLES`` look elsewhere, or longer.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from redis import Redis

from api.examples import JOB_ID
from shared.connection import connect
from tests.busy_worker import BusyWorker
from tests.gateway import RunningGateway
from tests.words import EndlessVocabulary
from worker.answers import Answers

KEY = {"X-API-Key": "root"}
SEED = os.environ.get("MINI_VLLM_TEST_SEED", "1")
NUM_EXAMPLES = os.environ.get("MINI_VLLM_TEST_EXAMPLES", "20")
PHASES = ("Examples", "Coverage", "Fuzzing", "Stateful")
DEADLINE_S = 280
#: It has no end, which a test of its own looks at.
ENDLESS = "/live"


@pytest.fixture
def busy_gateway(valkey_url: str, flushed: Redis, tmp_path: Path) -> Iterator[RunningGateway]:
    """With a key, so that it is asked for; all jobs end at once, so that every stream does."""
    gateway = RunningGateway(
        valkey_url,
        model="smollm2",
        admin_keys="root",
        max_wait_s=5,
        sse_keepalive_s=0.2,
        data_dir=tmp_path,
        worker_grace_s=3600,  # the worker says once that it is there
    )
    gateway.start()
    # A number that is no token is refused, which no document can say: here each one is a token.
    answers = Answers(connect(valkey_url), EndlessVocabulary(), "smollm2")
    with BusyWorker(flushed, "worker-0", "smollm2", beat_ms=3_600_000), answers:
        yield gateway
    gateway.stop()


@pytest.fixture
def example_job(busy_gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job whose id the document has as example is there, and has ended."""
    with monkeypatch.context() as patch, busy_gateway.client() as http:
        patch.setattr("shared.broker.uuid4", lambda: UUID(JOB_ID))
        http.post("/generate", json={"prompt": "x"}, headers=KEY)
        job = http.get(f"/jobs/{JOB_ID}?wait_s=5", headers=KEY).json()
    assert job["status"] == "completed"


def schemathesis(url: str, folder: Path) -> tuple[int, str]:
    """Its exit status, and what it printed. In a folder of its own, where it leaves reports."""
    flags = {
        "--header": f"X-API-Key: {KEY['X-API-Key']}",
        "--seed": SEED,
        "--max-examples": NUM_EXAMPLES,
        "--generation-database": "none",
        "--request-timeout": "20",
        "--exclude-path": ENDLESS,
        "--exclude-checks": "use_after_free",  # DELETE cancels a job, which can still be read
    }
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--no-color"]
    for name, value in flags.items():
        command += [name, value]
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ
        | {
            "PYTHONUTF8": "1",
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "SCHEMATHESIS_HOOKS": "tests.integration.openapi_hooks",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=DEADLINE_S,
    )
    return done.returncode, done.stdout


@pytest.mark.usefixtures("example_job")
def test_every_route_answers_as_its_document_says(
    busy_gateway: RunningGateway, tmp_path: Path
) -> None:
    status, output = schemathesis(busy_gateway.url, tmp_path)
    assert status == 0, output
    with busy_gateway.client() as http:
        document = http.get("/openapi.json", headers=KEY).json()
    num_operations = sum(
        len(methods.keys() - {"parameters"})
        for path, methods in document["paths"].items()
        if path != ENDLESS
    )
    assert f"Tested: {num_operations}\n" in output, output
    for phase in PHASES:
        assert f"✅ {phase}\n" in output, output
