"""Workers that were started by hand, as on another host: no supervisor, and no gateway either."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from shared.admission import Limits
from shared.broker import Broker
from shared.connection import connect
from shared.exit_codes import EXIT_BURIED
from shared.keys import WORKERS, job_key, stream_key, worker_key
from shared.protocol import GenerateRequest, WorkerReport
from shared.settings import load_settings
from shared.stream import JobRecord, Transcript, read_transcript
from tests.servers import Valkey
from tests.service import wait_until

MODEL = "smollm2"
LONG = GenerateRequest(
    prompt="Write a very long story", max_tokens=250, ignore_eos=True, seed=11, raw=True
)


class Pool:
    """Two workers of one thread, a Redis, and a test that submits."""

    def __init__(self, folder: Path, valkey: Valkey) -> None:
        self.client: Redis = connect(valkey.url)
        settings = load_settings()
        self.broker = Broker(
            self.client, MODEL, settings.result_ttl_s, Limits.from_settings(settings)
        )
        environment = os.environ | {
            "MINI_VLLM_HOST_DIR": str(folder / "host"),
            "MINI_VLLM_CONTEXT_TOKENS": "1024",
        }
        flags = ["--redis-url", valkey.url, "--threads", "1"]
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "worker", *flags, "--name", name], env=environment
            )
            for name in ("left", "right")
        ]

    def reports(self) -> dict[str, WorkerReport]:
        """By incarnation."""
        names: Any = self.client.smembers(WORKERS)
        raw = {n.decode(): self.client.hget(worker_key(n.decode()), "report") for n in names}
        return {n: WorkerReport.model_validate_json(r) for n, r in raw.items() if r}

    def wait_ready(self) -> "Pool":
        def are_ready() -> bool:
            return [r.state for r in self.reports().values()] == ["ready"] * 2

        wait_until(are_ready, 90, "both workers are ready")
        return self

    def transcript(self, job_id: str) -> Transcript:
        entries: Any = self.client.xrange(stream_key(job_id))
        return read_transcript(entries)

    def wait_for_end(self, job_id: str) -> Transcript:
        wait_until(lambda: self.transcript(job_id).end, 120, "the job ends")
        return self.transcript(job_id)

    def holder(self, job_id: str) -> "subprocess.Popen[bytes]":
        """The process that runs the job, once tokens flow."""
        wait_until(lambda: self.transcript(job_id).num_tokens >= 20, 60, "tokens flow")
        fields: Any = self.client.hgetall(job_key(job_id))
        record = JobRecord.from_hash(fields)
        assert record
        pid = self.reports()[record.worker].pid
        return next(process for process in self.processes if process.pid == pid)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    valkey = Valkey(appendonly=True)
    pool = Pool(tmp_path, valkey.start())
    try:
        yield pool.wait_ready()
    finally:
        for process in pool.processes:
            process.kill()
            process.wait()
        valkey.remove()


def test_the_other_worker_goes_on_with_the_job_of_a_killed_one(pool: Pool) -> None:
    whole = pool.wait_for_end(pool.broker.submit(LONG).job_id)
    job_id = pool.broker.submit(LONG).job_id
    pool.holder(job_id).kill()
    again = pool.wait_for_end(job_id)
    assert again.text == whole.text
    assert again.token_ids == whole.token_ids
    assert again.end is not None
    assert again.end.attempts == 2


def test_a_worker_that_stood_still_does_no_harm_when_it_goes_on_and_exits(pool: Pool) -> None:
    whole = pool.wait_for_end(pool.broker.submit(LONG).job_id)
    job_id = pool.broker.submit(LONG).job_id
    stopped = pool.holder(job_id)
    stopped.send_signal(signal.SIGSTOP)
    again = pool.wait_for_end(job_id)
    stopped.send_signal(signal.SIGCONT)
    assert stopped.wait(timeout=30) == EXIT_BURIED
    assert again.text == whole.text
    assert again.end is not None
    assert again.end.attempts == 2
    assert pool.transcript(job_id) == again, "it wrote nothing more"
