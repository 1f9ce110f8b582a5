"""Processes that neither work nor die: SIGSTOP, as from a stray kill or a paused debugger."""

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.acceptance.test_lifecycle import (
    LONG,
    submit,
    wait_for_end,
    wait_for_tokens,
    worker_pids,
)
from tests.service import Up, wait_until


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    started = Up(tmp_path, "--workers", "2", "--threads", "1")
    yield started.wait_ready()
    started.stop()


def child_with(up: Up, *words: str) -> psutil.Process:
    return next(p for p in up.descendants if set(words) <= set(p.cmdline()))


def serves(client: httpx.Client) -> bool:
    try:
        return client.get("/ready").status_code == 200
    except httpx.TransportError:
        return False


def test_the_job_of_a_stopped_worker_goes_on_elsewhere_and_it_is_replaced(up: Up) -> None:
    with up.client() as client:
        whole = wait_for_end(client, submit(client, **LONG))
        job_id = submit(client, **LONG)
        wait_for_tokens(client, job_id, 20)
        name = client.get(f"/jobs/{job_id}").json()["worker"]
        pid = worker_pids(client)[name]
        stopped = psutil.Process(pid)
        stopped.send_signal(signal.SIGSTOP)
        job = wait_for_end(client, job_id)
        assert job["text"] == whole["text"]
        assert job["attempts"] == 2
        wait_until(lambda: not stopped.is_running(), 60, "the stopped worker is ended")
        wait_until(
            lambda: (
                [w["state"] for w in client.get("/workers").json()["workers"]] == ["ready"] * 2
                and pid not in worker_pids(client).values()
            ),
            60,
            "it is replaced",
        )
        assert client.get("/metrics").json()["total_requests"] == 2
    assert f"{name} was stopped by a signal" in up.output


def test_a_stopped_gateway_is_replaced_and_serves_again(up: Up) -> None:
    with up.client() as client:
        job_id = submit(client, prompt="Tell me a story", max_tokens=20, ignore_eos=True)
    gateway = child_with(up, "-m", "api")
    gateway.send_signal(signal.SIGSTOP)
    wait_until(lambda: not gateway.is_running(), 60, "the stopped gateway is ended")
    with up.client() as client:
        wait_until(lambda: serves(client), 60, "another one serves")
        job = wait_for_end(client, job_id)
    assert job["usage"]["completion_tokens"] == 20


def test_a_stopped_valkey_is_replaced_and_has_kept_the_job(up: Up) -> None:
    with up.client() as client:
        whole = wait_for_end(client, submit(client, **LONG))
        job_id = submit(client, **LONG)
        wait_for_tokens(client, job_id, 20)
        valkey = next(p for p in up.descendants if "valkey" in p.name())
        valkey.send_signal(signal.SIGSTOP)
        wait_until(lambda: not valkey.is_running(), 60, "the stopped Valkey is ended")
        wait_until(lambda: serves(client), 60, "the service is back")
        job = wait_for_end(client, job_id)
    assert job["text"] == whole["text"]


def test_a_stopped_worker_and_an_open_stream_do_not_hold_up_the_end(up: Up) -> None:
    with up.client() as client:
        job_id = submit(client, **LONG)
        wait_for_tokens(client, job_id, 1)
        left = up.descendants
        for pid in worker_pids(client).values():
            psutil.Process(pid).send_signal(signal.SIGSTOP)
        with client.stream("GET", f"/jobs/{job_id}/stream") as response:
            lines = response.iter_lines()
            assert next(lines) == "event: start"
            up.signal(signal.SIGTERM)
            # Ended by the gateway, for the job is parked: a stream that was cut would raise here.
            assert not any(line.startswith("event: end") for line in lines)
    assert up.wait() == 0
    assert not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in left)
