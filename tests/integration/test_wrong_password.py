"""A Redis that refuses the login: said once, in words, without the password."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.connection import connect
from shared.exit_codes import EXIT_CONFIG
from tests.gateway_process import started
from tests.servers import Valkey, wait_for
from tests.worker_process import run_worker

WRONG = "not-it"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Valkey]:
    users = tmp_path / "users.acl"
    users.write_text(
        "user default off\n"
        "user test on nopass ~* &* +@all\n"
        "user service on >right ~* &* +@all\n"
        "user reader on >right ~* &* -@all +@connection +get\n"
    )
    valkey = Valkey("--aclfile", str(users), user="test", password="x")
    yield valkey.start()
    valkey.remove()


@pytest.mark.parametrize(
    ("user", "password", "reason"),
    [
        ("service", WRONG, "invalid username-password pair"),
        ("", "", "it asks for a password, and none is set"),
    ],
)
def test_a_worker_names_the_settings_and_ends(
    server: Valkey, tmp_path: Path, user: str, password: str, reason: str
) -> None:
    url = server.url_for(user, password)
    done = run_worker(url, "--name", "w", MINI_VLLM_HOST_DIR=str(tmp_path))
    assert done.returncode == EXIT_CONFIG
    shown = server.url_for(user, "***")
    assert done.stderr.startswith(f"w: error: Redis at {shown} refuses this worker: {reason}")
    assert "MINI_VLLM_REDIS_URL and MINI_VLLM_REDIS_PASSWORD" in done.stderr
    assert done.stderr.count("\n") == 1
    assert WRONG not in done.stderr


def test_a_worker_without_its_rights_is_told_where_they_stand(
    server: Valkey, tmp_path: Path
) -> None:
    url = server.url_for("reader", "right")
    done = run_worker(url, "--name", "w", MINI_VLLM_HOST_DIR=str(tmp_path))
    assert done.returncode == EXIT_CONFIG
    assert "no permissions" in done.stderr
    assert "deploy/redis/users.acl" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_gateway_says_it_once_and_serves_when_it_is_mended(server: Valkey) -> None:
    admin = connect(server.url)
    with started(server.url_for("service", WRONG)) as gateway:
        with gateway.client() as http:
            assert http.get("/health").status_code == 200
            for path in ("/ready", "/ready", "/jobs"):
                refused = http.get(path)
                error = refused.json()["error"]
                assert (refused.status_code, error["code"]) == (503, "redis_unavailable")
                assert "refuses the login" in error["message"]
                assert "MINI_VLLM_REDIS_PASSWORD" in error["message"]
                assert WRONG not in refused.text
            admin.execute_command(  # type: ignore[no-untyped-call]
                "ACL", "SETUSER", "service", f">{WRONG}"
            )
            wait_for(
                lambda: http.get("/ready").json()["error"]["code"] == "no_worker_ready",
                "it is let in",
            )
        gateway.signal(signal.SIGTERM)
        code, output = gateway.wait()
    admin.close()
    assert code == 0
    said = [line for line in output.splitlines() if "refuse" in line]
    assert len(said) == 1, output
    assert f"Redis at {server.url_for('service', '***')} refuses this gateway: " in said[0]
    assert "MINI_VLLM_REDIS_URL and MINI_VLLM_REDIS_PASSWORD" in said[0]
    assert "Traceback" not in output
    assert WRONG not in output


def test_a_gateway_without_its_rights_says_so_without_a_traceback(server: Valkey) -> None:
    with started(server.url_for("reader", "right")) as gateway:
        with gateway.client() as http:
            refused = [http.get("/ready") for _ in range(3)]
        gateway.signal(signal.SIGTERM)
        _, output = gateway.wait()
    for response in refused:
        assert response.json()["error"]["code"] == "redis_unavailable"
        assert "lacks a right" in response.json()["error"]["message"]
    assert "Traceback" not in output
    said = [line.split(" ", 1)[1] for line in output.splitlines()]
    assert len(said) == len(set(said)), output


def test_up_says_it_at_once(server: Valkey, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "cli", "up", "--port", "0", "--data-dir", str(tmp_path)],
        env=os.environ | {"MINI_VLLM_REDIS_URL": server.url_for("service", WRONG)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert f"Redis at {server.url_for('service', '***')} refuses us: invalid" in done.stderr
    assert WRONG not in done.stderr + done.stdout


def test_doctor_shows_no_password(server: Valkey) -> None:
    url = server.url_for("service", WRONG)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "cli", "doctor", "--redis-url", url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    shown = server.url_for("service", "***")
    assert f"Redis at {shown} refuses us" in done.stdout
    assert f"rq info -u '{shown}'" in done.stdout
    assert WRONG not in done.stdout + done.stderr
