"""How many tokens of a prompt were not computed is told wherever its usage is."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
from redis import Redis

from tests.batches import client_of, create, lines, rows, wait_until
from tests.busy_worker import BusyWorker
from tests.gateway import PlayedWorker, RunningGateway

CHAT = "/v1/chat/completions"
HI: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}


def played(worker: PlayedWorker, num_jobs: int = 1) -> threading.Thread:
    def run() -> None:
        for _ in range(num_jobs):
            worker.play("x")

    worker.cached_tokens = 2
    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_job_and_the_end_of_its_stream_have_it(http: httpx.Client, worker: PlayedWorker) -> None:
    job_id = http.post("/generate", json={"prompt": "x"}).json()["job_id"]
    worker.cached_tokens = 2
    worker.play("x")
    usage = {"prompt_tokens": 3, "cached_tokens": 2, "completion_tokens": 1}
    assert http.get(f"/jobs/{job_id}").json()["usage"] == usage
    assert http.get("/jobs").json()["jobs"][0]["usage"] == usage
    stream = http.get(f"/jobs/{job_id}/stream").text
    (end,) = [line for line in stream.splitlines() if '"finish_reason"' in line]
    assert json.loads(end.removeprefix("data: "))["usage"] == usage


def test_a_completion_has_it_where_openai_has_it(http: httpx.Client, worker: PlayedWorker) -> None:
    for path, body in ((CHAT, HI), ("/v1/completions", {"prompt": "x"})):
        thread = played(worker)
        usage = http.post(path, json=body).json()["usage"]
        thread.join()
        assert usage["prompt_tokens_details"] == {"cached_tokens": 2}, path
        assert (usage["prompt_tokens"], usage["total_tokens"]) == (3, 4), (
            "they are counted all the same"
        )


def test_choices_of_one_prompt_count_its_cached_tokens_once(
    http: httpx.Client, worker: PlayedWorker
) -> None:
    thread = played(worker, 2)
    usage = http.post(CHAT, json=HI | {"n": 2}).json()["usage"]
    thread.join()
    assert usage["prompt_tokens_details"] == {"cached_tokens": 2}


def test_the_last_chunk_of_a_stream_has_it(http: httpx.Client, worker: PlayedWorker) -> None:
    thread = played(worker)
    body = HI | {"stream": True, "stream_options": {"include_usage": True}}
    chunks = [
        json.loads(line.removeprefix("data: "))
        for line in http.post(CHAT, json=body).text.splitlines()
        if line.startswith("data: {")
    ]
    thread.join()
    assert chunks[-1]["usage"]["prompt_tokens_details"] == {"cached_tokens": 2}


def test_a_batch_adds_them_up(valkey_url: str, flushed: Redis, tmp_path: Path) -> None:
    gateway = RunningGateway(valkey_url, data_dir=tmp_path)
    gateway.start()
    try:
        client = client_of(gateway)
        worker = BusyWorker(flushed, "worker-0", "smollm2")
        worker.cached_tokens = 2
        with worker:
            batch = wait_until(client, create(client, lines(3)))
        answers = rows(client, batch.output_file_id)
        details = [row["response"]["body"]["usage"]["prompt_tokens_details"] for row in answers]
        assert details == [{"cached_tokens": 2}] * 3
        assert batch.usage is not None
        assert batch.usage.input_tokens_details.cached_tokens == 6
    finally:
        gateway.stop()


def test_the_command_line_says_it_where_it_says_how_many_tokens_there_were(
    gateway: RunningGateway, worker: PlayedWorker
) -> None:
    command = [sys.executable, "-m", "cli", "generate", "x", "--url", gateway.url, "--stats"]
    for cached, words in ((2, "3 prompt (2 cached) and 1 output"), (0, "3 prompt and 1 output")):
        process = subprocess.Popen(command, stdout=-1, stderr=subprocess.PIPE, text=True)
        worker.cached_tokens = cached
        worker.play("x")
        _, errors = process.communicate(timeout=30)
        assert words in errors
