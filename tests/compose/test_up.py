"""`docker compose up` as it is, and what an operator then does with it."""

import re
import subprocess
from functools import partial
from random import Random
from typing import Any

import httpx
import pytest

from tests.acceptance.undisturbed import undisturbed_crowd, undisturbed_texts, wait_for_moment
from tests.compose.project import (
    UP_DEADLINE_S,
    Project,
    cores_of,
    crash,
    docker,
    inspect,
    python_pid,
)
from tests.service import wait_until


@pytest.fixture(autouse=True)
def _is_whole(project: Project) -> None:
    """What a test before broke or scaled is as it was."""
    project.run("up", "--detach", "--scale", "worker=2", "--no-recreate")
    project.wait_for_states("ready", "ready")


def _leased_and_pinned(project: Project) -> list[set[int]]:
    """The cores of each worker that has some, as it says and as the kernel says."""
    leased = [set(w["cores"]) for w in project.workers() if w["cores"]]
    pinned = [cores_of(python_pid(c)) for c in project.containers("worker")]
    assert sorted(map(sorted, leased)) == sorted(sorted(p) for p in pinned if p in leased)
    return leased


def test_it_settles_by_itself(project: Project) -> None:
    ready = project.get("/ready")
    assert ready
    assert ready.json() == {"status": "ready", "workers_ready": 2}
    for service in ("redis", "gateway", "worker"):
        for container in project.containers(service):
            wait_until(partial(_is_healthy, container), 90, f"{service} is healthy")
    (model,) = project.containers("model", also_stopped=True)
    assert inspect(model)["State"]["ExitCode"] == 0


def _is_healthy(container: str) -> bool:
    return str(inspect(container)["State"]["Health"]["Status"]) == "healthy"


def test_only_the_gateway_is_published_and_on_loopback_alone(project: Project) -> None:
    bindings: dict[str, Any] = {}
    for service in ("redis", "gateway", "worker"):
        for container in project.containers(service):
            ports = inspect(container)["NetworkSettings"]["Ports"] or {}
            bindings |= {f"{service} {port}": where for port, where in ports.items() if where}
    here = {"HostIp": "127.0.0.1", "HostPort": str(project.port)}
    assert bindings == {"gateway 8000/tcp": [here]}


@pytest.mark.parametrize("service", ["gateway", "worker"])
def test_a_container_can_do_no_more_than_it_must(project: Project, service: str) -> None:
    container = project.containers(service)[0]
    status = docker("exec", container, "cat", "/proc/1/status", "/proc/1/cmdline")
    assert re.search(r"^Name:\s+tini$", status, re.M)
    assert re.search(r"^Uid:\s+10001\s+10001\s+10001\s+10001$", status, re.M)
    assert re.search(r"^CapPrm:\s+0+$", status, re.M)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.M)
    writes = docker("exec", container, "sh", "-c", "touch /opt/mini-vllm/x 2>&1; true")
    assert "Read-only file system" in writes


def test_redis_knows_two_users_and_does_not_run_as_root(project: Project) -> None:
    (redis,) = project.containers("redis")
    assert docker("exec", redis, "redis-cli", "ping").startswith("NOAUTH")
    pid = inspect(redis)["State"]["Pid"]
    owner = docker("exec", redis, "stat", "-c", "%U", "/proc/1")
    assert owner == "redis", f"process {pid} runs as {owner}"
    arguments = docker("exec", redis, "cat", "/proc/1/cmdline").split("\0")
    assert arguments[0].startswith("redis-server")
    files = docker("exec", redis, "find", "/data", "-name", "appendonly*")
    assert "appendonly.aof" in files


def test_redis_shares_its_volume_with_no_other(project: Project) -> None:
    once = ("run", "--rm", "--no-deps", "-T", "redis")
    assert "redis-check-aof" in project.run(*once, "which", "redis-check-aof")
    said = project.run(*once, "sh", "/etc/mini-vllm/start.sh", check=False)
    assert "error: another Redis runs on this volume" in said


def test_the_tour_with_curl(project: Project) -> None:
    body = '{"prompt": "Explain gravity simply", "seed": 1, "max_tokens": 24}'
    job = _curl(project, "/generate", "-d", body)
    job_id = re.search(r'"job_id":"([0-9a-f]{32})"', job)
    assert job_id, job
    path = f"/jobs/{job_id[1]}"
    events = _curl(project, f"{path}/stream", "-N")
    assert events.startswith("event: start\nid: 0\n")
    assert re.search(r"\nevent: end\nid: \d+\.end\n", events)
    told = "".join(re.findall(r'data: \{"text":"((?:[^"\\]|\\.)*)","index"', events))
    done = _curl(project, f"{path}?wait_s=30")
    assert '"status":"completed"' in done
    assert f'"text":"{told}"' in done
    assert job_id[1] in _curl(project, "/jobs?limit=10")
    assert '"total_requests":' in _curl(project, "/metrics")
    assert '"field": "max_tokens"' in _curl(
        project, "/generate", "-d", '{"prompt": "x", "max_tokens": 0}'
    )


def _curl(project: Project, path: str, *flags: str) -> str:
    command = ["curl", "-sS", "--max-time", "60", *flags, project.url + path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_workers_have_cores_of_their_own(project: Project) -> None:
    leased = _leased_and_pinned(project)
    assert len(leased) == 2
    assert not set.intersection(*leased), leased
    threads = [w["threads"] for w in project.workers()]
    assert sorted(threads) == sorted(map(len, leased))


def test_a_worker_container_that_crashes_goes_unnoticed(project: Project, chance: Random) -> None:
    victim = chance.choice(sorted(project.containers("worker")))
    with undisturbed_crowd(project) as crowd:
        wait_for_moment(crowd, chance)
        crash(victim)
    project.wait_for_states("ready", "ready")
    assert inspect(victim)["RestartCount"] >= 1
    assert not set.intersection(*_leased_and_pinned(project))


def test_one_worker_fewer_goes_unnoticed_and_the_third_waits_for_a_core(
    project: Project, chance: Random
) -> None:
    with undisturbed_crowd(project) as crowd:
        wait_for_moment(crowd, chance, latest=200)
        project.run("up", "--detach", "--scale", "worker=1", "--no-recreate")
    project.wait_for_states("ready")
    project.run("up", "--detach", "--scale", "worker=2", "--no-recreate")
    project.wait_for_states("ready", "ready")
    project.run("up", "--detach", "--scale", "worker=3", "--no-recreate")
    workers = project.wait_for_states("ready", "ready", "waiting")
    (waiting,) = [w for w in workers if w["state"] == "waiting"]
    assert not waiting["cores"]
    assert waiting["memory_mb"] < 200, "it has loaded no model"
    (holder, _) = [w for w in workers if w["state"] == "ready"]
    names = {inspect(c)["Config"]["Hostname"]: c for c in project.containers("worker")}
    docker("stop", "--time", "60", names[holder["host"]])
    successors = project.wait_for_states("ready", "ready")
    assert waiting["name"] in {w["name"] for w in successors}
    assert not set.intersection(*_leased_and_pinned(project))
    docker("rm", names[holder["host"]])


def test_a_restart_of_redis_goes_unnoticed(project: Project, chance: Random) -> None:
    with undisturbed_crowd(project) as crowd:
        wait_for_moment(crowd, chance, latest=300)
        project.run("restart", "redis")


def test_a_worker_of_another_host_needs_the_url_the_model_and_the_settings(
    project: Project, make_project: Any
) -> None:
    texts = undisturbed_texts(project)
    # Each host measures for itself, and may find that another format is the fastest: other tokens.
    weights = {w["weights"]["format"] for w in project.workers()}
    (weight_format,) = weights
    other = make_project(
        MINI_VLLM_WEIGHT_FORMAT="as-is" if weight_format == "q4_1" else weight_format,
        MINI_VLLM_REDIS_URL=f"redis://worker@{project.address(project.containers('redis')[0])}:6379/0",
        WORKERS="1",
    )
    other.run("run", "--rm", "--no-deps", "model")
    project.run("stop", "worker")
    other.run("up", "--detach", "--no-deps", "worker")
    _join(other.containers("worker"), f"{project.name}_default")
    wait_until(
        lambda: [w["state"] for w in project.workers()] == ["ready"], UP_DEADLINE_S, "it serves"
    )
    (far,) = project.workers()
    assert far["host"] == inspect(other.containers("worker")[0])["Config"]["Hostname"]
    assert _mounts(project.containers("worker", also_stopped=True)).isdisjoint(
        _mounts(other.containers("worker"))
    ), "it can see files of the first host"
    with undisturbed_crowd(project):
        pass
    assert len(texts) == 16
    other.remove()


def _join(containers: list[str], network: str) -> None:
    for container in containers:
        docker("network", "connect", network, container)


def _mounts(containers: list[str]) -> set[str]:
    return {m["Source"] for c in containers for m in inspect(c)["Mounts"]}


def test_it_can_be_taken_down_and_keeps_what_was_accepted(project: Project) -> None:
    with httpx.Client(base_url=project.url, timeout=60) as http:
        body = {"prompt": "Long", "max_tokens": 600, "ignore_eos": True, "seed": 9}
        job_id = http.post("/generate", json=body).json()["job_id"]
    project.run("down")
    assert not docker(
        "ps", "--all", "-q", "--filter", f"label=com.docker.compose.project={project.name}"
    )
    project.run("up", "--detach")
    project.wait_for_states("ready", "ready")
    with httpx.Client(base_url=project.url, timeout=90) as http:
        job = wait_until(
            lambda: _ended(http.get(f"/jobs/{job_id}?wait_s=60").json()), 180, "the job ends"
        )
    assert (job["status"], job["usage"]["completion_tokens"]) == ("completed", 600)


def _ended(job: dict[str, Any]) -> dict[str, Any] | None:
    return job if job["status"] in ("completed", "failed", "cancelled") else None
