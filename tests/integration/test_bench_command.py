"""`mini-vllm bench` against a gateway and a worker that the test plays."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
        [sys.executable, "-m", "cli", "bench", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("workload", ["random", "shared-prefix", "chat"])
def test_a_workload_is_measured_and_the_last_line_is_json(url: str, workload: str) -> None:
    words = ["--concurrency", "1,2", "--requests", "4", "--output-tokens", "5", "--turns", "2"]
    if workload != "chat":
        words = words[:-2]
    done = bench("--url", f"ours={url}", "--workload", workload, *words, "--rounds", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    found = list(_runs(told))
    assert len(found) == 2 * 2, told  # two loads, two rounds
    for figures in found:
        assert figures["failed"] == 0
        assert figures["completed"] >= 4
        assert figures["total_output_tokens"] == 5 * figures["completed"]
        assert figures["median_ttft_ms"] > 0
        assert figures["p99_e2el_ms"] >= figures["median_e2el_ms"]


def _runs(told: Any) -> Iterator[dict[str, Any]]:
    """Wherever they stand: what has the figures of one run."""
    if isinstance(told, dict):
        if isinstance(told.get("completed"), int):
            yield told
        else:
            for value in told.values():
                yield from _runs(value)
    elif isinstance(told, list):
        for value in told:
            yield from _runs(value)


def test_running_streams_are_watched_while_a_long_prompt_comes(url: str) -> None:
    words = ["--workload", "long", "--concurrency", "2", "--requests", "1", "--quiet", "0.3s"]
    done = bench("--url", url, *words, "--output-tokens", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    (figures,) = _runs(json.loads(done.stdout.splitlines()[-1]))
    assert (figures["streams"], figures["stream_errors"]) == (2, 0)
    assert figures["max_during_ms"] >= figures["median_during_ms"] > 0
    assert figures["p99_before_ms"] > 0


def test_a_trace_is_sent_at_its_times(url: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    lines = [
        {"time_s": 0, "prompt": "Hello", "output_tokens": 3},
        {"time_s": 0.2, "messages": [{"role": "user", "content": "Hi"}], "output_tokens": 4},
        {"time_s": 0.5, "prompt_tokens": 20, "output_tokens": 5},
    ]
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = bench("--url", url, "--workload", "trace", "--trace", str(trace))
    assert done.returncode == 0, done.stdout + done.stderr
    (figures,) = _runs(json.loads(done.stdout.splitlines()[-1]))
    assert (figures["completed"], figures["total_output_tokens"]) == (3, 12)
    assert figures["duration"] >= 0.5

    trace.write_text('{"time_s": 0, "prompt": "Hello", "output_tokens": 0}\n')
    done = bench("--url", url, "--workload", "trace", "--trace", str(trace))
    assert done.returncode != 0
    assert "line 1: output_tokens" in done.stderr


def test_a_folder_gets_the_result_and_plots(url: str, tmp_path: Path) -> None:
    words = ["--concurrency", "1,2", "--requests", "4", "--output-tokens", "5"]
    done = bench("--url", url, *words, "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "out" / "result.json").read_text())
    plots = [path for path in (tmp_path / "out").iterdir() if path.suffix in (".png", ".svg")]
    assert plots
    assert all(path.stat().st_size > 5000 for path in plots)


def test_bad_options_are_named(url: str) -> None:
    for words, named in (
        (["--slo", "tft:1s"], "--slo"),
        (["--concurrency", "0"], "concurrency"),
        (["--rate", "2", "--concurrency", "2"], "rate"),
        (["--workload", "poem"], "workload"),
    ):
        done = bench("--url", url, *words)
        assert done.returncode != 0
        assert named in done.stderr
        assert "Traceback" not in done.stderr


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
