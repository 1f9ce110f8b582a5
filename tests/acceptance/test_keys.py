"""A service with keys: who may come in, and what its processes know and say."""

import os
from collections.abc import Iterator

import httpx
import psutil
import pytest

from tests.service import Up

USER_KEY, ADMIN_KEY = "mv-user-key-3f9c", "mv-admin-key-77aa"
MARK = "quetzalcoatlus"


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(
        tmp_path_factory.mktemp("up"),
        *("--workers", "1", "--threads", "1", "--host", "0.0.0.0"),
        MINI_VLLM_API_KEYS=USER_KEY,
        MINI_VLLM_ADMIN_KEYS=ADMIN_KEY,
    )
    try:
        up.wait_ready()
        up.url = up.url.replace("0.0.0.0", "127.0.0.1")
        yield up
    finally:
        up.stop()


def test_a_job_runs_for_its_key_and_neither_prompt_nor_key_is_written_anywhere(closed: Up) -> None:
    body = {"prompt": f"Tell me of the {MARK}", "max_tokens": 8, "temperature": 0}
    with closed.client() as http:
        assert http.post("/generate", json=body).status_code == 401
        http.headers["Authorization"] = f"Bearer {USER_KEY}"
        bad = http.post("/generate", json=body | {"max_tokens": 0, "stop": MARK})
        assert bad.status_code == 422
        too_long = http.post("/generate", json=body | {"prompt": f"{MARK} " * 3000})
        for response in (http.post("/generate", json=body), too_long):
            job = http.get(response.json()["links"]["job"] + "?wait_s=60").json()
            assert job["status"] in ("completed", "failed")
        assert http.get("/workers").status_code == 403
        http.headers["Authorization"] = f"Bearer {ADMIN_KEY}"
        assert http.get("/workers").status_code == 200
    for secret in (MARK, USER_KEY, ADMIN_KEY):
        assert secret not in closed.output


def test_no_worker_knows_a_key_and_no_command_line_shows_one(closed: Up) -> None:
    processes = closed.descendants
    workers = [p for p in processes if "worker" in p.cmdline()]
    assert len(workers) == 1
    assert USER_KEY not in str(workers[0].environ())
    assert ADMIN_KEY not in str(workers[0].environ())
    for process in [*processes, psutil.Process(closed.process.pid)]:
        assert USER_KEY not in " ".join(process.cmdline())


def test_health_needs_no_key(closed: Up) -> None:
    assert httpx.get(closed.url + "/health").status_code == 200
    assert httpx.get(closed.url + "/ready").status_code == 200
    assert os.environ.get("MINI_VLLM_API_KEYS") is None
