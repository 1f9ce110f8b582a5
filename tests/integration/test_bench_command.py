"""`python -m experiments.serving` against a gateway and a worker that the test plays."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from redis import Redis
from rq.serializers import JSONSerializer

from shared.rq_job import GenerateJob
from shared.scripts import run_script
from tests.busy_worker import BusyWorker
from tests.gateway import RunningGateway

SLOTS = 8


class WritingWorker(BusyWorker):
    """Gives each job as many tokens as it asks for, one a round, and leaves those that were cancelled."""

    def _run(self) -> None:
        left: dict[str, tuple[int, int]] = {}  # tokens that each job has, and is to have
        while not self._is_over.wait(0.002):
            want = SLOTS - len(left)
            asked = (self.name, self.model, 0, SLOTS, want, 16, 3600)
            for row in run_script(self.client, "pop", *asked):
                if len(row) > 1:
                    job_id = row[0].decode()
                    self.start(job_id)
                    left[job_id] = (0, self._max_tokens(job_id))
            for job_id, (num_tokens, most) in list(left.items()):
                self.token(job_id, num_tokens, "a")
                left[job_id] = (num_tokens + 1, most)
                if num_tokens + 1 == most:
                    self.end(job_id, most)
                    del left[job_id]
                elif self.emit(job_id):
                    del left[job_id]

    def _max_tokens(self, job_id: str) -> int:
        job = GenerateJob.fetch(job_id, connection=self.client, serializer=JSONSerializer)
        return int(job.args[0]["request"]["max_tokens"])


@pytest.fixture
def url(valkey_url: str, flushed: Redis) -> Iterator[str]:
    gateway = RunningGateway(valkey_url, model="smollm2").start()
    with WritingWorker(flushed, "worker-0", "smollm2"):
        yield gateway.url
    gateway.stop()


def bench(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "experiments.serving", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_each_workload_is_measured_and_the_last_line_is_json(url: str) -> None:
    words = ["--clients", "2", "--requests", "2", "--output-tokens", "5", "--quiet-s", "0.1"]
    done = bench("--url", f"ours={url}", *words, "--rounds", "2", "--seed", "3")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["seed"] == 3
    for name in ("random", "shared", "chats", "long"):
        rounds = told["workloads"][name]["ours"]["rounds"]
        assert [figures["errors"] for figures in rounds] == [0, 0], done.stdout
        assert [figures["requests"] for figures in rounds] == [2 if name == "long" else 4] * 2
        assert all(figures["ttft_p50_s"] > 0 for figures in rounds)
    figures = told["workloads"]["random"]["ours"]["rounds"][0]
    assert figures["prompt_tokens"] == 4 * 3  # of which a played worker always says 3
    # The time is told to a tenth of a second, and is that of the whole round.
    assert 0 < 20 / figures["output_tokens_per_s"] <= figures["took_s"] + 0.05
    figures = told["workloads"]["long"]["ours"]["rounds"][0]
    assert (figures["streams"], figures["stream_errors"]) == (2, 0)
    assert figures["during_max_ms"] >= figures["during_p50_ms"] > 0


def test_a_server_that_is_not_there_is_named(url: str) -> None:
    done = bench("--url", f"ours={url}", "--url", "peer=http://127.0.0.1:9")
    assert done.returncode == 1
    assert "--url peer: http://127.0.0.1:9/v1/models" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_that_a_server_does_not_have_is_told(url: str) -> None:
    done = bench("--url", f"ours={url}", "--model", "other")
    assert done.returncode == 1
    assert "model_not_found" in done.stderr
    assert "Traceback" not in done.stderr
