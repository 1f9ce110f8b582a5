"""What starts Prometheus and Grafana in containers: which keys and passwords it takes, and where they go."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.unit.deploy.monitoring import FOLDER, GRAFANA


def _start(script: Path, tmp_path: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """With what it starts replaced by something that tells its arguments and environment."""
    told = tmp_path / "prometheus"
    told.write_text('#!/bin/sh\necho "$@"\nenv\n')
    told.chmod(0o755)
    text = script.read_text().replace("/run/mini-vllm", str(tmp_path))
    copy = tmp_path / "start.sh"
    copy.write_text(text.replace("exec /run.sh", f"exec {told}"))
    path = f"{tmp_path}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", copy], env={"PATH": path, **environment}, capture_output=True, text=True, timeout=30
    )


@pytest.mark.parametrize("key", ["mv-a-key", ""])
def test_prometheus_finds_the_key_in_a_file_that_only_it_can_read(tmp_path: Path, key: str) -> None:
    done = _start(
        FOLDER / "start.sh", tmp_path, MINI_VLLM_METRICS_KEY=key, PROMETHEUS_RETENTION="3d"
    )
    assert done.returncode == 0, done.stderr
    file = tmp_path / "metrics.key"
    assert file.read_text() == key
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f"--config.file={tmp_path}/prometheus.yml" in done.stdout
    assert "--storage.tsdb.retention.time=3d" in done.stdout
    assert "METRICS_KEY" not in done.stdout


def test_prometheus_is_not_started_with_a_hash_that_no_gateway_would_take(tmp_path: Path) -> None:
    hashed = "sha256:" + "0" * 64
    done = _start(
        FOLDER / "start.sh", tmp_path, MINI_VLLM_METRICS_KEY=hashed, PROMETHEUS_RETENTION="3d"
    )
    assert done.returncode == 78
    assert done.stderr.startswith("error: MINI_VLLM_METRICS_KEY is a hash")
    assert not (tmp_path / "metrics.key").exists()


def test_grafana_is_not_started_without_a_password(tmp_path: Path) -> None:
    done = _start(GRAFANA / "start.sh", tmp_path, GF_SECURITY_ADMIN_PASSWORD="")
    assert done.returncode == 78
    assert done.stderr.startswith("error: GRAFANA_PASSWORD must be set")
    done = _start(GRAFANA / "start.sh", tmp_path, GF_SECURITY_ADMIN_PASSWORD="a secret")
    assert done.returncode == 0
    assert "GF_SECURITY_ADMIN_PASSWORD=a secret" in done.stdout
