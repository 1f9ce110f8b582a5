"""What somebody on call sees in a terminal, of a real pool: its jobs, and how it is doing."""

import json
import os
import subprocess
import sys
from typing import Any

import httpx
import pytest

from tests.service import Up, wait_until

pytestmark = pytest.mark.model

LONG = {"prompt": "Never stop", "max_tokens": 900, "ignore_eos": True}


def cli(service: Up, *words: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, "-m", "cli", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"MINI_VLLM_URL": service.url, "COLUMNS": "80"},
    )
    assert "Traceback" not in done.stderr
    return done


def submit(client: httpx.Client, **body: Any) -> str:
    response = client.post("/generate", json=body).raise_for_status()
    return str(response.json()["job_id"])


def ended(client: httpx.Client, job_id: str) -> dict[str, Any]:
    job: dict[str, Any] = client.get(f"/jobs/{job_id}?wait_s=60").json()
    assert job["ended_at"]
    return job


def test_a_job_is_listed_shown_and_read(service: Up, client: httpx.Client) -> None:
    job_id = submit(client, prompt="Explain gravity simply", max_tokens=24, seed=1)
    job = ended(client, job_id)
    tokens = f"{job['usage']['prompt_tokens']}+{job['usage']['completion_tokens']}"
    row = cli(service, "jobs", "list", "--limit", "1").stdout.splitlines()[1].split()
    assert row[:5] == [job_id[:8], "completed", "normal", job["worker"], tokens]
    shown = cli(service, "jobs", "show", job_id[:12]).stdout
    assert f"prefill {job['timings']['prefill_s']:.2f} s" in shown
    assert shown.endswith(f"\n\n{job['text']}\n")
    read = cli(service, "jobs", "tail", job_id)
    assert (read.returncode, read.stdout) == (0, job["text"] + "\n")


def test_a_running_job_is_followed_and_cancelled(service: Up, client: httpx.Client) -> None:
    job_id = submit(client, **LONG)
    wait_until(lambda: client.get(f"/jobs/{job_id}").json()["text"], 60, "it speaks")
    tail = subprocess.Popen(
        [sys.executable, "-m", "cli", "jobs", "tail", job_id[:10], "--url", service.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # communicate() would pass over what a buffer holds
    )
    assert tail.stdout is not None
    begun = tail.stdout.read(20)
    cancelled = cli(service, "jobs", "cancel", job_id[:10])
    assert cancelled.returncode == 0
    assert cancelled.stdout.startswith(f"{job_id} ")
    rest, errors = tail.communicate(timeout=60)
    assert (tail.returncode, b"cancelled" in errors) == (1, True)
    assert (begun + rest).decode() == ended(client, job_id)["text"] + "\n"


def test_top_shows_the_pool_as_the_service_tells_it(service: Up, client: httpx.Client) -> None:
    job_id = submit(client, **LONG)
    wait_until(lambda: client.get(f"/jobs/{job_id}").json()["text"], 60, "it speaks")
    frame = cli(service, "top", "--once")
    client.delete(f"/jobs/{job_id}")
    assert frame.returncode == 0, frame.stderr
    lines = frame.stdout.splitlines()
    assert "2 workers ready" in lines[1]
    for worker in client.get("/workers").json()["workers"]:
        row = next(line.split() for line in lines if line.startswith(worker["name"]))
        assert row[1:3] == ["ready", str(worker["cores"][0])]
    row = next(line.split() for line in lines if line.startswith(job_id[:8]))
    assert row[1:3] == ["running", "normal"]
    assert max(map(len, lines)) <= 80


def test_the_view_for_programs_agrees_with_the_metrics(service: Up, client: httpx.Client) -> None:
    ended(client, submit(client, prompt="Tell me about rivers", max_tokens=12))
    found = json.loads(cli(service, "top", "--json").stdout)
    metrics = client.get("/metrics").json()
    assert found["totals"]["completed"] == metrics["jobs"]["completed"]
    assert found["totals"]["generated_tokens"] == metrics["total_tokens_generated"]
    assert found["verdict"]["text"].startswith("All is well")
