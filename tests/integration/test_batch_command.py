"""`mini-vllm batch` against a gateway: exit codes, what is said, and what is left beside the output."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from tests.batches import line, lines
from tests.busy_worker import BusyWorker
from tests.gateway import RunningGateway


@pytest.fixture
def url(valkey_url: str, flushed: Redis, tmp_path: Path) -> Iterator[str]:
    gateway = RunningGateway(valkey_url, data_dir=tmp_path / "data", worker_grace_s=3600).start()
    with BusyWorker(flushed, "worker-0", "smollm2", beat_ms=3_600_000):
        yield gateway.url
    gateway.stop()


def batch(url: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "cli", "batch", *words, "--url", url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_file_becomes_a_file_of_answers_and_can_be_looked_at(url: str, tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(lines(20))
    done = batch(url, "run", str(source), "-o", str(output))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "20 of 20 answered" in done.stderr
    rows = [json.loads(row) for row in output.read_text().splitlines()]
    assert [row["custom_id"] for row in rows] == [f"c{i}" for i in range(20)]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "in.jsonl", "out.jsonl"]
    listed = batch(url, "list").stdout.splitlines()
    assert listed[1].split()[1:5] == ["completed", "20", "0", "20"]
    batch_id = listed[1].split()[0]
    assert batch_id in batch(url, "status", batch_id).stdout
    refused = batch(url, "cancel", batch_id)
    assert (refused.returncode, "completed" in refused.stderr) == (1, True)


def test_lines_that_fail_are_beside_the_output_and_in_the_exit_code(
    url: str, tmp_path: Path
) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    long = [{"role": "user", "content": "y" * 200_001}]
    source.write_bytes(line(0) + line(1, messages=long))
    done = batch(url, "run", str(source), "-o", str(output))
    assert done.returncode == 3, done.stderr
    assert "1 of 2 answered" in done.stderr
    errors = (tmp_path / "out.jsonl.errors.jsonl").read_text().splitlines()
    assert [json.loads(row)["custom_id"] for row in errors] == ["c1"]


def test_bad_lines_are_named_and_there_is_no_output(url: str, tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(line(0) + line(0) + line(1, surprise=1))
    done = batch(url, "run", str(source), "-o", str(output))
    assert done.returncode == 1
    assert "line 2: custom_id" in done.stderr
    assert "line 3: body: unknown field `surprise`" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "in.jsonl"]


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "no requests"), (b"{", "first line"), (None, "in.jsonl"), (b"[]", "first line")],
)
def test_what_cannot_be_read_is_said_in_one_line(
    url: str, tmp_path: Path, content: bytes | None, words: str
) -> None:
    source = tmp_path / "in.jsonl"
    if content is not None:
        source.write_bytes(content)
    done = batch(url, "run", str(source), "-o", str(tmp_path / "out.jsonl"))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert words in done.stderr


def test_an_output_that_is_being_made_from_another_input_is_left_alone(
    url: str, tmp_path: Path
) -> None:
    source, state = tmp_path / "in.jsonl", tmp_path / "out.jsonl.batch"
    source.write_bytes(lines(1))
    fields = {"url": url, "input_sha256": "0" * 64, "key": "k", "file_id": "", "batch_id": ""}
    state.write_text(json.dumps(fields))
    done = batch(url, "run", str(source), "-o", str(tmp_path / "out.jsonl"))
    assert (done.returncode, "another input" in done.stderr) == (1, True)
    assert state.exists()
