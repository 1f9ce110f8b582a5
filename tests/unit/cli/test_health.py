import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.health import _host_dir, _number, worker_problem
from shared.settings import load_settings
from tests.seeker_process import seeking


def check(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-m", "cli.health", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_worker_that_waits_is_healthy_until_it_is_killed(tmp_path: Path) -> None:
    environment = {"MINI_VLLM_HOST_DIR": str(tmp_path), "MINI_VLLM_HEARTBEAT_S": "3600"}
    with seeking(tmp_path, "a", num_cores=1) as (worker,):
        alive = check("worker", **environment)
        worker.kill()
        dead = check("worker", **environment)
    assert (alive.returncode, alive.stdout, alive.stderr) == (0, "", "")
    assert dead.returncode == 1
    assert dead.stderr == (
        f"no worker of this host runs: none keeps its file in {tmp_path}/workers locked\n"
    )


def test_a_worker_without_a_sign_of_life_is_not_healthy(tmp_path: Path) -> None:
    with seeking(tmp_path, "ab", num_cores=1):
        file = tmp_path / "workers" / "a"
        os.utime(tmp_path / "workers" / "b", (1, 1))
        os.utime(file)
        now_s = file.stat().st_mtime
        assert worker_problem(str(tmp_path), 1.0) is None, "one of two is enough"
        os.utime(file, (now_s - 100, now_s - 100))
        problem = worker_problem(str(tmp_path), 1.0)
        assert problem is not None
        assert problem.startswith("the worker has given no sign of life for 10")
        assert worker_problem(str(tmp_path), 3600.0) is None, "its heart beats that slowly"


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOST_DIR", "HEARTBEAT_S", "PORT"):
        monkeypatch.setenv(f"MINI_VLLM_{name}", "")
    assert _host_dir() == str(load_settings().host_dir)
    assert _number("MINI_VLLM_HEARTBEAT_S", "1") == 1.0


def test_workers_of_other_containers_do_not_count(tmp_path: Path) -> None:
    with seeking(tmp_path, "a", num_cores=1):
        file = tmp_path / "workers" / "a"
        assert worker_problem(str(tmp_path), 3600.0) is None
        file.write_text("other" + file.read_text())
        problem = worker_problem(str(tmp_path), 3600.0)
    assert problem is not None
    assert problem.startswith("no worker of this host runs")


def test_a_host_directory_without_workers_is_named(tmp_path: Path) -> None:
    done = check("worker", MINI_VLLM_HOST_DIR=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == f"no worker runs here: {tmp_path}/workers: No such file or directory\n"


def test_it_looks_where_workers_are_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINI_VLLM_HOST_DIR", raising=False)
    assert Path(_host_dir()) == load_settings().host_dir


@pytest.mark.parametrize(
    ("arguments", "environment", "line"),
    [
        ([], {}, "say what to look at: python -P -m cli.health gateway|worker\n"),
        (["gateway"], {"MINI_VLLM_PORT": "x"}, "MINI_VLLM_PORT='x' is not a number"),
        (["gateway"], {"MINI_VLLM_PORT": "99999"}, "MINI_VLLM_PORT='99999' is not a number"),
        (["worker"], {"MINI_VLLM_HEARTBEAT_S": "nan"}, "MINI_VLLM_HEARTBEAT_S='nan' is not"),
    ],
)
def test_what_is_asked_wrongly_is_said_in_one_line(
    arguments: list[str], environment: dict[str, str], line: str
) -> None:
    done = check(*arguments, **environment)
    assert done.returncode == 1
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


def test_it_imports_next_to_nothing() -> None:
    """It runs every few seconds beside a pinned worker."""
    program = "import sys; before = set(sys.modules); import cli.health; print(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) <= {"cli", "cli.health", "shared", "shared.host", "fcntl"}
