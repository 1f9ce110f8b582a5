"""Starting, stopping and dying: nothing is lost, and no process stays behind."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.service import Up, wait_until

LONG = {"prompt": "Write a very long story", "max_tokens": 300, "ignore_eos": True, "seed": 11}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Starts `up` in one folder, as often as asked; ends what is left."""
    started: list[Up] = []

    def start_one(*flags: str, **environment: str) -> Up:
        flags = flags or ("--workers", "1", "--threads", "1")
        started.append(Up(tmp_path, *flags, **environment))
        return started[-1]

    yield start_one
    for up in started:
        up.stop()


def submit(client: httpx.Client, **body: Any) -> str:
    response = client.post("/generate", json=body)
    assert response.status_code == 202, response.text
    return str(response.json()["job_id"])


def wait_for_tokens(client: httpx.Client, job_id: str, count: int) -> None:
    wait_until(
        lambda: len(client.get(f"/jobs/{job_id}").json()["text"]) >= count, 60, "tokens flow"
    )


def wait_for_end(client: httpx.Client, job_id: str) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        job: dict[str, Any] = client.get(f"/jobs/{job_id}?wait_s=30").json()
        return job if job["status"] not in ("queued", "running") else None

    job: dict[str, Any] = wait_until(ended, 120, "the job ends")
    return job


def worker_pids(client: httpx.Client) -> dict[str, int]:
    return {w["name"]: w["pid"] for w in client.get("/workers").json()["workers"]}


def all_gone(processes: list[psutil.Process]) -> bool:
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)


def test_sigterm_lets_running_jobs_finish_and_leaves_nothing(start: Any) -> None:
    up = start().wait_ready()
    with up.client() as client:
        job_id = submit(client, prompt="Tell me a story", max_tokens=60, ignore_eos=True)
        wait_for_tokens(client, job_id, 1)
        children = up.descendants
        assert len(children) >= 3
        up.signal(signal.SIGTERM)

        def is_refused() -> bool:
            response = client.post("/generate", json={"prompt": "x"})
            return bool(response.status_code == 503 and "shutting_down" in response.text)

        wait_until(is_refused, 10, "nothing more is taken")
        assert client.get(f"/jobs/{job_id}").status_code == 200
    assert up.wait() == 0
    assert all_gone(children)
    again = start().wait_ready()
    with again.client() as client:
        job = client.get(f"/jobs/{job_id}").json()
    assert job["status"] == "completed"
    assert job["usage"]["completion_tokens"] == 60
    assert job["attempts"] == 1


def test_what_cannot_finish_in_time_is_parked_and_goes_on_after_a_restart(start: Any) -> None:
    up = start().wait_ready()
    with up.client() as client:
        whole = wait_for_end(client, submit(client, **LONG))
        job_id = submit(client, **LONG)
        wait_for_tokens(client, job_id, 20)
    up.signal(signal.SIGTERM)
    up.signal(signal.SIGTERM)
    up.wait()
    again = start("--workers", "1", "--threads", "1", MINI_VLLM_DRAIN_TIMEOUT_S="0").wait_ready()
    with again.client() as client:
        job = wait_for_end(client, job_id)
    assert job["text"] == whole["text"]


def test_a_killed_worker_is_replaced_and_its_job_goes_on_without_gap_or_repeat(start: Any) -> None:
    up = start("--workers", "2", "--threads", "1").wait_ready()
    with up.client() as client:
        whole = wait_for_end(client, submit(client, **LONG))
        job_id = submit(client, **LONG)
        wait_for_tokens(client, job_id, 40)
        holder = next(
            w
            for w in client.get("/workers").json()["workers"]
            if w["name"] == client.get(f"/jobs/{job_id}").json()["worker"]
        )
        os.kill(holder["pid"], signal.SIGKILL)
        job = wait_for_end(client, job_id)
        assert job["text"] == whole["text"]
        assert job["attempts"] == 2
        wait_until(
            lambda: (
                holder["pid"] not in worker_pids(client).values()
                and [w["state"] for w in client.get("/workers").json()["workers"]] == ["ready"] * 2
            ),
            60,
            "the worker is replaced",
        )
        totals = client.get("/metrics").json()
    assert totals["total_requests"] == 2
    assert totals["total_tokens_generated"] == 600


def test_children_exit_with_a_killed_supervisor_and_the_next_up_goes_on(start: Any) -> None:
    up = start().wait_ready()
    with up.client() as client:
        whole = wait_for_end(client, submit(client, **LONG))
        job_id = submit(client, **LONG)
        wait_for_tokens(client, job_id, 20)
    children = up.descendants
    up.process.kill()
    wait_until(lambda: all_gone(children), 30, "the children exit")
    again = start().wait_ready()
    with again.client() as client:
        job = wait_for_end(client, job_id)
    assert job["text"] == whole["text"]


def test_a_killed_valkey_comes_back_with_every_token(start: Any) -> None:
    up = start().wait_ready()
    with up.client() as client:
        whole = wait_for_end(client, submit(client, **LONG))
        job_id = submit(client, **LONG)
        wait_for_tokens(client, job_id, 20)
        valkey = next(p for p in up.descendants if "valkey" in p.name())
        valkey.kill()

        def answers() -> bool:
            return bool(client.get("/ready").status_code == 200)

        wait_until(answers, 60, "the service is ready again")
        job = wait_for_end(client, job_id)
    assert job["text"] == whole["text"]


def test_a_second_up_on_one_data_directory_is_refused(start: Any) -> None:
    start().wait_ready()
    second = start()
    assert second.wait() == 1
    assert "data" in second.output
    assert "Traceback" not in second.output


def test_a_taken_port_and_a_bad_model_end_up_with_the_reason(start: Any, tmp_path: Path) -> None:
    up = start().wait_ready()
    port = up.url.rsplit(":", 1)[1]
    taken = Up(tmp_path / "b", "--workers", "1", "--port", port)
    assert taken.wait() == 1
    assert port in taken.output
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"not a model")
    broken = Up(tmp_path / "c", "--workers", "1", "--model", str(bad))
    assert broken.wait() == 1
    assert "bad.gguf" in broken.output
    for output in (taken.output, broken.output):
        assert "Traceback" not in output
    taken.stop()
    broken.stop()


def test_a_surplus_worker_waits_for_a_core(start: Any) -> None:
    num_cores = len(os.sched_getaffinity(0))
    up = start("--workers", str(num_cores + 1), "--threads", "1").wait_ready()
    with up.client() as client:
        states = [w["state"] for w in client.get("/workers").json()["workers"]]
        assert sorted(states) == ["ready"] * num_cores + ["waiting"]
        ready = next(w for w in client.get("/workers").json()["workers"] if w["state"] == "ready")
        os.kill(ready["pid"], signal.SIGKILL)
        wait_until(
            lambda: (
                [w["state"] for w in client.get("/workers").json()["workers"]].count("ready")
                == num_cores
            ),
            60,
            "the waiting worker takes over",
        )


def test_ctrl_c_in_a_terminal_drains_and_leaves_nothing(tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    environment = os.environ | {
        "MINI_VLLM_HOST_DIR": str(tmp_path / "host"),
        "MINI_VLLM_DATA_DIR": str(tmp_path / "data"),
        "MINI_VLLM_CONTEXT_TOKENS": "512",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "up", "--port", "0", "--workers", "1", "--threads", "1"],
        env=environment,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        preexec_fn=_own_terminal,
    )
    os.close(terminal)
    output = b""
    while b"ready: http://" not in output:
        output += os.read(controller, 4096)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 3
    os.write(controller, b"\x03")
    try:
        while os.read(controller, 4096):
            pass
    except OSError:  # the terminal has no process left
        pass
    assert process.wait(timeout=60) == 0
    assert all_gone(children)
    os.close(controller)


def _own_terminal() -> None:
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
