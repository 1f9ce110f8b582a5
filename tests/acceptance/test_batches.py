"""A batch on the real model, through the death of a worker and of the gateway: each line answered once,
with the text of an undisturbed run."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import openai
import pytest
from openai.types import Batch

from tests.acceptance.victims import gateway_pid, strike, wait_for_workers, wait_until_gone
from tests.service import Up, wait_until

pytestmark = pytest.mark.model

NUM_LINES = 500
DEADLINE_S = 300
ENDPOINT: Literal["/v1/completions"] = "/v1/completions"


def body(number: int) -> dict[str, Any]:
    return {"prompt": f"{number} is", "max_tokens": 4 + number % 5, "seed": number}


def content(count: int) -> bytes:
    rows = (
        {"custom_id": f"c{i}", "method": "POST", "url": ENDPOINT, "body": body(i)}
        for i in range(count)
    )
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(
        tmp_path_factory.mktemp("up"),
        *("--workers", "2", "--threads", "1"),
        MINI_VLLM_BATCH_LEASE_S="3",
    )
    try:
        yield up.wait_ready()
    finally:
        up.stop()


def client_of(up: Up) -> openai.OpenAI:
    return openai.OpenAI(base_url=up.url + "/v1", api_key="none", max_retries=0)


def found(client: openai.OpenAI, batch_id: str) -> Batch | None:
    """``None`` while the gateway is away. Asked rarely: the cores are the workers'."""
    time.sleep(0.3)
    try:
        return client.batches.retrieve(batch_id)
    except (openai.APIConnectionError, openai.InternalServerError):
        return None


def run_batch(up: Up, *strikes: Any) -> list[tuple[str, str]]:
    """Each strike comes after its share of the lines; custom ids and texts."""
    client = client_of(up)
    file = client.files.create(file=("in.jsonl", content(NUM_LINES)), purpose="batch")
    batch_id = client.batches.create(
        input_file_id=file.id, endpoint=ENDPOINT, completion_window="24h"
    ).id

    def num_done() -> int:
        batch = found(client, batch_id)
        return batch.request_counts.completed if batch and batch.request_counts else 0

    for index, hit in enumerate(strikes, 1):
        share = NUM_LINES * index // (len(strikes) + 1)
        wait_until(partial(_reaches, num_done, share), DEADLINE_S, f"{share} lines are done")
        hit()
    ended = wait_until(
        lambda: (batch := found(client, batch_id)) and batch.status == "completed" and batch,
        DEADLINE_S,
        "the batch is completed",
    )
    counts = ended.request_counts.model_dump()
    assert counts == {"total": NUM_LINES, "completed": NUM_LINES, "failed": 0}
    assert ended.error_file_id is None
    rows = [json.loads(row) for row in client.files.content(ended.output_file_id).text.splitlines()]
    return [(row["custom_id"], row["response"]["body"]["choices"][0]["text"]) for row in rows]


def _reaches(count: Callable[[], int], share: int) -> bool:
    return count() >= share


@pytest.mark.timeout(900)
def test_500_lines_through_two_deaths_are_those_of_an_undisturbed_run(up: Up) -> None:
    undisturbed = run_batch(up)
    assert [custom_id for custom_id, _ in undisturbed] == [f"c{i}" for i in range(NUM_LINES)]
    assert len({text for _, text in undisturbed}) > 100

    def kill_a_worker() -> None:
        pid = wait_for_workers(up)[0]
        strike(pid, signal.SIGKILL)
        wait_until_gone(pid)

    def kill_the_gateway() -> None:
        pid = gateway_pid(up)
        strike(pid, signal.SIGKILL)
        wait_until_gone(pid)

    assert run_batch(up, kill_a_worker, kill_the_gateway) == undisturbed


def test_the_command_line_runs_a_file_and_goes_on_after_ctrl_c(up: Up, tmp_path: Path) -> None:
    wait_for_workers(up)
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(content(150))
    command = [sys.executable, "-m", "cli", "batch", "run", str(source), "-o", str(output)]
    command += ["--url", up.url]
    # What a shell starts in the background ignores SIGINT, and so do its children.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed) as first:
        assert first.stderr
        assert "Ctrl-C leaves it running" in first.stderr.readline()
        first.send_signal(signal.SIGINT)
        said = first.stderr.read()
        assert first.wait(timeout=30) == 130, said
    assert "The same command waits for it again" in said
    assert not output.exists()
    second = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert second.returncode == 0, second.stderr
    assert "goes on with batch_" in second.stderr
    assert "150 of 150 answered" in second.stderr
    rows = [json.loads(row) for row in output.read_text().splitlines()]
    assert [row["custom_id"] for row in rows] == [f"c{i}" for i in range(150)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_somebody_who_waits_does_not_wait_for_a_batch(up: Up) -> None:
    """An interactive request is answered while most of a batch is still to be done."""
    wait_for_workers(up)
    client = client_of(up)
    file = client.files.create(file=("in.jsonl", content(NUM_LINES)), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint=ENDPOINT, completion_window="24h")

    def num_done() -> int:
        found_now = found(client, batch.id)
        return found_now.request_counts.completed if found_now and found_now.request_counts else 0

    wait_until(lambda: num_done() > 10, DEADLINE_S, "it runs")
    for number in range(5):
        answer = client.chat.completions.create(
            model="default",
            messages=[{"role": "user", "content": f"Hello {number}"}],
            max_tokens=8,
        )
        assert answer.choices[0].message.content
    left = client.batches.cancel(batch.id)
    assert left.request_counts
    assert left.request_counts.completed < NUM_LINES
    ended = wait_until(
        lambda: (b := client.batches.retrieve(batch.id)).status == "cancelled" and b, 60, "it ends"
    )
    assert ended.error_file_id
    told = [ended.output_file_id, ended.error_file_id]
    rows = [
        json.loads(row)["custom_id"]
        for file_id in told
        for row in client.files.content(file_id).text.splitlines()
    ]
    assert sorted(rows) == sorted(f"c{i}" for i in range(NUM_LINES))
