"""What snapshots are for, beside prompts that begin alike: jobs go on where they were, here or elsewhere."""

import signal
from collections.abc import Iterator
from pydoc_data.topics import topics
from typing import Any

import httpx
import pytest

from tests.acceptance.victims import holder_of, strike, wait_for_workers
from tests.service import Up, wait_until

pytestmark = pytest.mark.model

_DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def shared_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(
        tmp_path_factory.mktemp("up"),
        *("--workers", "2", "--threads", "1"),
        MINI_VLLM_SLOTS="2",
        MINI_VLLM_CHECKPOINT_S="0.2",
    )
    try:
        yield up.wait_ready()
    finally:
        up.stop()


@pytest.fixture
def up(shared_up: Up) -> Up:
    """Whole again: what died in a test was started anew."""
    wait_for_workers(shared_up)
    return shared_up


def _body(number: int, **others: Any) -> dict[str, Any]:
    return {
        "prompt": topics["compound"][1700 * number :][:1200],
        "raw": True,
        "max_tokens": 256,
        "ignore_eos": True,
        "temperature": 0.8,
        "seed": 70 + number,
    } | others


def _submit(http: httpx.Client, body: dict[str, Any]) -> str:
    return str(http.post("/generate", json=body).raise_for_status().json()["job_id"])


def _job(http: httpx.Client, job_id: str) -> dict[str, Any]:
    job: dict[str, Any] = http.get(f"/jobs/{job_id}").raise_for_status().json()
    return job


def _wait_for_end(http: httpx.Client, job_id: str) -> dict[str, Any]:
    ended = ("completed", "failed", "cancelled")
    job: dict[str, Any] = wait_until(
        lambda: (job := _job(http, job_id))["status"] in ended and job, _DEADLINE_S, "the job ends"
    )
    assert job["status"] == "completed", job
    return job


def _wait_for_tokens(http: httpx.Client, job_id: str, count: int) -> None:
    def has_come() -> bool:
        return bool(_job(http, job_id)["usage"]["completion_tokens"] >= count)

    wait_until(has_come, _DEADLINE_S, f"{count} tokens of the job")


def _undisturbed(http: httpx.Client, body: dict[str, Any]) -> str:
    return str(_wait_for_end(http, _submit(http, body | {"priority": "normal"}))["text"])


def test_a_killed_workers_job_goes_on_from_its_checkpoint_on_another_worker(up: Up) -> None:
    with up.client() as http:
        before = http.get("/metrics").json()["prefix_cache"]["resumed_tokens"]
        body = _body(0)
        job_id = _submit(http, body)
        _wait_for_tokens(http, job_id, 100)
        held = holder_of(up, job_id)
        assert held
        strike(held[1], signal.SIGKILL)
        job = _wait_for_end(http, job_id)
        assert job["attempts"] == 2
        num_prompt_tokens = job["usage"]["prompt_tokens"]

        def resumed() -> int:
            now = http.get("/metrics").json()["prefix_cache"]["resumed_tokens"]
            return int(now - before)

        # More than the prompt, which the prefix cache alone would have: a part of the answer, too.
        wait_until(lambda: resumed() > num_prompt_tokens, 20, "what was restored is told")
        assert resumed() < num_prompt_tokens + 256
        assert job["text"] == _undisturbed(http, body)


def test_a_high_job_takes_the_slot_of_a_low_one_which_goes_on_as_if_nothing_had_been(
    up: Up,
) -> None:
    with up.client() as http:
        before = http.get("/metrics").json()["preemptions"]
        bodies = [_body(number, priority="low") for number in range(1, 5)]
        low = [_submit(http, body) for body in bodies]
        for job_id in low:
            _wait_for_tokens(http, job_id, 5)
        high = _submit(http, _body(5, priority="high", max_tokens=8))
        assert _wait_for_end(http, high)["status"] == "completed"
        left = [_job(http, job_id)["status"] for job_id in low]
        assert "completed" not in left, "the high job waited for a low one"

        texts = [_wait_for_end(http, job_id)["text"] for job_id in low]
        wait_until(
            lambda: http.get("/metrics").json()["preemptions"] > before,
            20,
            "it is told as preempted",
        )
        assert texts == [_undisturbed(http, body) for body in bodies]
