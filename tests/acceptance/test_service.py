"""What a user does with a running service, on the real model."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.service import Up, sse_events, wait_until

SEEDED = {"prompt": "Write a short story about the sea", "max_tokens": 40, "seed": 7}


def submit(client: httpx.Client, **body: Any) -> str:
    response = client.post("/generate", json=body)
    assert response.status_code == 202, response.text
    job_id = response.json()["job_id"]
    assert isinstance(job_id, str)
    return job_id


def result(client: httpx.Client, job_id: str) -> dict[str, Any]:
    """Waits for the end."""
    return wait_until(  # type: ignore[no-any-return]
        lambda: (
            job
            if (job := client.get(f"/jobs/{job_id}?wait_s=30").json())["status"]
            not in ("queued", "running")
            else None
        ),
        120,
        f"job {job_id} ends",
    )


def run(client: httpx.Client, **body: Any) -> dict[str, Any]:
    return result(client, submit(client, **body))


def test_a_bare_prompt_is_answered_as_a_chat_turn(client: httpx.Client) -> None:
    job = run(client, prompt="Explain gravity simply", temperature=0, max_tokens=200)
    assert job["status"] == "completed"
    assert "force" in job["text"]
    assert job["finish_reason"] == "stop"
    assert job["usage"]["prompt_tokens"] > 10
    assert 0 < job["usage"]["completion_tokens"] <= 200
    assert job["timings"]["ttft_s"] > 0
    assert job["attempts"] == 1
    assert job["worker"] in ("worker-0", "worker-1")


def test_messages_and_raw_prompts_are_different_inputs(client: httpx.Client) -> None:
    chat = run(
        client, messages=[{"role": "user", "content": "Say hello"}], temperature=0, max_tokens=8
    )
    bare = run(client, prompt="Say hello", temperature=0, max_tokens=8)
    raw = run(client, prompt="Say hello", raw=True, temperature=0, max_tokens=8)
    assert chat["text"] == bare["text"]
    assert raw["usage"]["prompt_tokens"] < bare["usage"]["prompt_tokens"]


def test_sixteen_jobs_at_once_all_complete_on_both_workers(client: httpx.Client) -> None:
    ids = [submit(client, prompt=f"Count to {i}", max_tokens=24, seed=i) for i in range(16)]
    jobs = [result(client, job_id) for job_id in ids]
    assert [job["status"] for job in jobs] == ["completed"] * 16
    assert {job["worker"] for job in jobs} == {"worker-0", "worker-1"}


def test_a_seeded_job_gives_the_same_tokens_alone_in_a_batch_and_on_another_worker(
    client: httpx.Client,
) -> None:
    alone = run(client, **SEEDED)
    texts, workers = {alone["text"]}, {alone["worker"]}
    others = [submit(client, prompt=f"Tell me about {i}", max_tokens=40) for i in range(7)]
    for job in [result(client, submit(client, **SEEDED)) for _ in range(2)]:
        texts.add(job["text"])
        workers.add(job["worker"])
    for job in [result(client, i) for i in [submit(client, **SEEDED) for _ in range(8)]]:
        texts.add(job["text"])
        workers.add(job["worker"])
    assert len(texts) == 1
    assert workers == {"worker-0", "worker-1"}
    assert {result(client, job_id)["status"] for job_id in others} == {"completed"}


def test_a_job_without_a_seed_reports_one_that_repeats_it(client: httpx.Client) -> None:
    first = run(client, prompt="Tell me a joke", max_tokens=16)
    again = run(client, prompt="Tell me a joke", max_tokens=16, seed=first["seed"])
    assert again["text"] == first["text"]


def test_the_stream_is_the_text_byte_for_byte(client: httpx.Client) -> None:
    job_id = submit(client, prompt="Write ten emojis and Chinese words", max_tokens=48, seed=3)
    with client.stream("GET", f"/jobs/{job_id}/stream") as response:
        events = list(sse_events(response))
    kinds = [event for event, _, _ in events]
    assert kinds[0] == "start"
    assert kinds[-1] == "end"
    assert set(kinds[1:-1]) == {"token"}
    tokens = [json.loads(data) for event, _, data in events if event == "token"]
    job = result(client, job_id)
    assert "".join(token["text"] for token in tokens) == job["text"]
    assert tokens[-1]["index"] + tokens[-1]["count"] == job["usage"]["completion_tokens"]
    end = json.loads(events[-1][2])
    assert {k: end[k] for k in ("status", "usage")} == {k: job[k] for k in ("status", "usage")}


def test_a_dropped_stream_resumes_without_gap_or_repeat(client: httpx.Client) -> None:
    job_id = submit(client, prompt="Write a long poem", max_tokens=64, seed=5, ignore_eos=True)
    texts, last_id = [], ""
    with client.stream("GET", f"/jobs/{job_id}/stream") as response:
        for event, event_id, data in sse_events(response):
            last_id = event_id
            if event == "token":
                texts.append(json.loads(data)["text"])
            if len(texts) == 10:
                break
    headers = {"Last-Event-ID": last_id}
    with client.stream("GET", f"/jobs/{job_id}/stream", headers=headers) as response:
        for event, event_id, data in sse_events(response):
            last_id = event_id
            if event == "token":
                texts.append(json.loads(data)["text"])
    assert "".join(texts) == result(client, job_id)["text"]
    assert last_id == "64.end"
    again = client.get(f"/jobs/{job_id}/stream", headers={"Last-Event-ID": last_id})
    assert again.status_code == 204


def test_a_client_that_leaves_does_not_end_its_job(client: httpx.Client) -> None:
    job_id = submit(client, prompt="Write a poem", max_tokens=32, seed=5, ignore_eos=True)
    with client.stream("GET", f"/jobs/{job_id}/stream") as response:
        next(sse_events(response))
    assert result(client, job_id)["usage"]["completion_tokens"] == 32


def test_cancel_ends_a_running_job_and_again_is_harmless(client: httpx.Client) -> None:
    job_id = submit(client, prompt="Never stop", max_tokens=900, ignore_eos=True)
    with client.stream("GET", f"/jobs/{job_id}/stream") as response:
        for event, _, _ in sse_events(response):
            if event == "token":
                break
    first = client.delete(f"/jobs/{job_id}")
    assert first.status_code == 200, first.text
    job = result(client, job_id)
    assert (job["status"], job["finish_reason"]) == ("cancelled", "cancelled")
    assert 0 < job["usage"]["completion_tokens"] < 900
    assert job["text"]
    second = client.delete(f"/jobs/{job_id}")
    assert second.status_code == 200
    assert second.json()["status"] == "cancelled"


def test_a_deadline_ends_a_running_job_and_keeps_its_text(client: httpx.Client) -> None:
    job = run(client, prompt="Never stop", max_tokens=990, ignore_eos=True, timeout_s=1.5)
    assert (job["status"], job["finish_reason"]) == ("failed", "timeout")
    assert job["error"]["code"] == "timeout"
    assert 0 < job["usage"]["completion_tokens"] < 990


def test_a_stop_string_is_never_sent(client: httpx.Client) -> None:
    plain = run(client, prompt="Count from 1 to 9", temperature=0, max_tokens=32)
    stop = plain["text"][8:12]
    stopped = run(client, prompt="Count from 1 to 9", temperature=0, max_tokens=32, stop=stop)
    assert stopped["finish_reason"] == "stop"
    assert stopped["text"] == plain["text"][: plain["text"].index(stop)]


def test_a_prompt_longer_than_the_context_fails_with_both_counts(client: httpx.Client) -> None:
    job = run(client, prompt="word " * 1500)
    assert job["status"] == "failed"
    assert job["error"]["code"] == "context_length_exceeded"
    assert "1024" in job["error"]["message"]
    assert job["error"]["field"] == "prompt"
    assert any(part.isdigit() and int(part) > 1500 for part in job["error"]["message"].split())


def test_a_prompt_that_is_costly_to_tokenize_is_refused_before(client: httpx.Client) -> None:
    before = {w["pid"] for w in client.get("/workers").json()["workers"]}
    other = submit(client, prompt="Tell me a story", max_tokens=40, ignore_eos=True)
    job = run(client, prompt="<|im_end|>a" * 7_000)
    assert job["error"]["code"] == "context_length_exceeded"
    assert "at least 7005 tokens" in job["error"]["message"]  # five are the template's
    assert result(client, other)["usage"]["completion_tokens"] == 40
    assert {w["pid"] for w in client.get("/workers").json()["workers"]} == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": "x", "max_tokens": 0}, "max_tokens"),
        ({"prompt": "x", "temperature": -1}, "temperature"),
        ({"prompt": "x", "top_p": 2}, "top_p"),
        ({"prompt": "x", "seed": 2**32 - 1}, "seed"),
        ({"prompt": "x", "stop": [""]}, "stop"),
        ({"prompt": "x", "surprise": 1}, "surprise"),
        ({"prompt": "x", "priority": "urgent"}, "priority"),
        ({"prompt": 5}, "prompt"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages"),
    ],
)
def test_bad_input_is_refused_by_name(
    client: httpx.Client, body: dict[str, Any], field: str
) -> None:
    response = client.post("/generate", json=body)
    assert response.status_code == 422
    error = response.json()["error"]
    assert error["code"] == "invalid_request"
    assert field in error["message"]


def test_unknown_jobs_and_large_bodies_have_their_status(client: httpx.Client) -> None:
    missing = client.get("/jobs/" + "0" * 32)
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "job_not_found")
    large = client.post("/generate", json={"prompt": "x" * 2_000_000})
    assert (large.status_code, large.json()["error"]["code"]) == (413, "body_too_large")


def test_metrics_add_up_to_what_was_done(client: httpx.Client) -> None:
    before = client.get("/metrics").json()
    job = run(client, prompt="Tell me about rivers", max_tokens=20, ignore_eos=True)
    after = client.get("/metrics").json()
    assert after["total_requests"] == before["total_requests"] + 1
    assert after["total_tokens_generated"] == before["total_tokens_generated"] + 20
    assert job["usage"]["completion_tokens"] == 20
    assert after["avg_latency_sec"] > 0
    assert after["tokens_per_sec_avg"] > 0
    assert after["memory_mb"] > 100
    assert {worker["state"] for worker in after["workers"]} == {"ready"}


def test_workers_have_disjoint_cores_and_say_that_they_are_exact(client: httpx.Client) -> None:
    assert client.get("/ready").status_code == 200
    workers = client.get("/workers").json()["workers"]
    assert [worker["name"] for worker in workers] == ["worker-0", "worker-1"]
    cores = [core for worker in workers for core in worker["cores"]]
    assert len(cores) == len(set(cores)) == 2
    assert all(worker["batch_invariant"] for worker in workers)
    assert all(worker["threads"] == 1 for worker in workers)


def test_generate_prints_the_answer_and_reports_errors(service: Up) -> None:
    command = [sys.executable, "-m", "cli", "generate", "--url", service.url]
    done = subprocess.run(
        [*command, "--temperature", "0", "--max-tokens", "8", "--raw", "The capital of France is"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout
    bad = subprocess.run(
        [*command, "--max-tokens", "0", "x"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert bad.returncode != 0
    assert "max" in bad.stderr
    assert "Traceback" not in bad.stderr


def test_clients_in_parallel_share_one_gateway(client: httpx.Client, service: Up) -> None:
    def one(number: int) -> str:
        with service.client() as own:
            job_id = submit(own, prompt=f"Say {number}", max_tokens=16, seed=number)
            with own.stream("GET", f"/jobs/{job_id}/stream") as response:
                streamed = "".join(
                    json.loads(data)["text"]
                    for event, _, data in sse_events(response)
                    if event == "token"
                )
            assert streamed == result(own, job_id)["text"]
            return job_id

    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(one, range(16)))
    listed = [job["job_id"] for job in client.get("/jobs?limit=200").json()["jobs"]]
    assert set(ids) <= set(listed)
