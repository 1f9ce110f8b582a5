"""``python -m worker`` as it is set up wrongly, and how many workers `up` starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shared.exit_codes import EXIT_CONFIG

#: Nothing listens there.
REDIS_URL = "redis://127.0.0.1:1"


def run(module: str, *flags: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-m", module, *flags, "--redis-url", REDIS_URL],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_host_directory_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    done = run("worker", "--name", "w", MINI_VLLM_HOST_DIR=str(in_the_way))
    assert done.returncode == EXIT_CONFIG
    assert done.stderr == (
        f"w: error: MINI_VLLM_HOST_DIR={in_the_way} cannot be used: Not a directory "
        f"({in_the_way}/cores); name a directory that this user can write to\n"
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_host_directory_that_others_own_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    done = run("worker", "--name", "w", MINI_VLLM_HOST_DIR=str(tmp_path / "host"))
    assert done.returncode == EXIT_CONFIG
    assert f"MINI_VLLM_HOST_DIR={tmp_path}/host cannot be used: Permission denied" in done.stderr
    assert done.stderr.count("\n") == 1


def test_more_threads_than_cores_are_refused_by_name(tmp_path: Path) -> None:
    done = run("worker", "--threads", "512", MINI_VLLM_HOST_DIR=str(tmp_path))
    assert done.returncode == EXIT_CONFIG
    assert "MINI_VLLM_THREADS (--threads) is 512, but only" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_name_that_could_not_be_a_files_is_refused(tmp_path: Path) -> None:
    done = run("worker", "--incarnation", "../w", MINI_VLLM_HOST_DIR=str(tmp_path))
    assert done.returncode == 2
    assert "--incarnation: '../w': give up to 80 of" in done.stderr


@pytest.mark.parametrize(
    ("flags", "line"), [((), ": 3 workers x "), (("--workers", "2"), ": 2 workers x ")]
)
def test_the_number_of_workers_is_that_of_the_setting_unless_a_flag_says_other(
    tmp_path: Path, flags: tuple[str, ...], line: str
) -> None:
    environment = {"MINI_VLLM_WORKERS": "3", "MINI_VLLM_DATA_DIR": str(tmp_path)}
    done = run("cli", "up", "--port", "0", *flags, **environment)
    assert done.returncode == 1, "there is no Redis"
    assert line in done.stderr
