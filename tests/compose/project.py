"""A Compose project of our files, as an operator runs it, under a name and on a port of its own."""

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import yaml

from shared.redis_url import with_password
from tests.service import wait_until

ROOT = Path(__file__).parents[2]
UP_DEADLINE_S = 180.0
PASSWORD = "a p@ss/w:rd#1"

#: Registries may be in reach of the host's network only; where they are not, this changes nothing.
_BUILT = {"build": {"context": str(ROOT), "network": "host"}}
_AUDITOR = (
    "user auditor on >change-this-auditor-password ~* resetchannels -@all +@read +@connection\n"
)


def _override(redis_files: Path) -> dict[str, Any]:
    redis = {"volumes": [f"{redis_files}:/etc/mini-vllm:ro"]}
    model = _BUILT | {"network_mode": "host"}
    return {"services": {"redis": redis, "gateway": _BUILT, "worker": _BUILT, "model": model}}


def compose_command() -> list[str]:
    """Compose v2 where there is one, else v1; `DOCKER_COMPOSE` says otherwise."""
    if given := os.environ.get("DOCKER_COMPOSE"):
        return given.split()
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True)
    return (
        ["docker", "compose"] if plugin.returncode == 0 else [shutil.which("docker-compose") or ""]
    )


class Project:
    """Reachable as a `Running` service once it is up."""

    def __init__(self, folder: Path, *files: Path, **settings: str) -> None:
        self.name = f"mvllm{uuid4().hex[:8]}"
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        override = folder / f"{self.name}.yml"
        override.write_text(yaml.safe_dump(_override(self._redis_files())))
        self._files = [ROOT / "docker-compose.yml", override, *files]
        self._settings = {
            "MINI_VLLM_PORT": str(self.port),
            "MINI_VLLM_CONTEXT_TOKENS": "1024",
            "REDIS_PASSWORD": PASSWORD,
        } | settings

    @property
    def redis_url(self) -> str:
        """From the host, through the bridge; a restarted container may have another address."""
        address = self.address(self.containers("redis")[0])
        return with_password(f"redis://auditor@{address}:6379/0", PASSWORD)

    def run(self, *arguments: str, check: bool = True, deadline_s: float = 900) -> str:
        """What Compose says, standard error included."""
        files = [part for path in self._files for part in ("-f", str(path))]
        command = [*compose_command(), *files, "-p", self.name, *arguments]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=_clean_environment() | self._settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=deadline_s,
        )
        assert not check or done.returncode == 0, f"{' '.join(arguments)}:\n{done.stdout[-4000:]}"
        return done.stdout

    def _redis_files(self) -> Path:
        """Ours, with one more user, who looks at the books of the service."""
        folder = self._folder / f"{self.name}-redis"
        shutil.copytree(ROOT / "deploy/redis", folder)
        with (folder / "users.acl").open("a") as users:
            users.write(_AUDITOR)
        return folder

    def settings(self, **changes: str) -> None:
        """As a changed .env."""
        self._settings |= changes

    def containers(self, service: str, *, also_stopped: bool = False) -> list[str]:
        label = f"label=com.docker.compose.project={self.name}"
        flags = ["--filter", label, "--filter", f"label=com.docker.compose.service={service}"]
        return docker("ps", "--quiet", *(["--all"] if also_stopped else []), *flags).split()

    def address(self, container: str) -> str:
        networks = inspect(container)["NetworkSettings"]["Networks"]
        return str(next(iter(networks.values()))["IPAddress"])

    def logs(self, service: str) -> str:
        return self.run("logs", "--no-color", service)

    def get(self, path: str, headers: dict[str, str] | None = None) -> httpx.Response | None:
        try:
            return httpx.get(self.url + path, timeout=10, headers=headers)
        except httpx.TransportError:
            return None

    def workers(self) -> list[dict[str, Any]]:
        response = self.get("/workers")
        return list(response.json()["workers"]) if response and response.is_success else []

    def wait_for_states(self, *states: str) -> list[dict[str, Any]]:
        """Until the workers are in these states, as many of each."""

        def are_so() -> list[dict[str, Any]]:
            workers = self.workers()
            return workers if sorted(w["state"] for w in workers) == sorted(states) else []

        found: list[dict[str, Any]] = wait_until(are_so, UP_DEADLINE_S, f"workers are {states}")
        return found

    def remove(self) -> None:
        self.run("down", "--volumes", "--remove-orphans", "--timeout", "20")


def docker(*arguments: str, check: bool = True) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=120)
    assert not check or done.returncode == 0, f"docker {arguments}: {done.stderr}"
    return done.stdout.strip()


def inspect(container: str) -> dict[str, Any]:
    return dict(json.loads(docker("inspect", container))[0])


def python_pid(container: str) -> int:
    """Of the process that tini runs, as the host counts."""
    tini = int(inspect(container)["State"]["Pid"])
    (child,) = Path(f"/proc/{tini}/task/{tini}/children").read_text().split()
    return int(child)


def crash(container: str) -> None:
    """kill -9 from outside, so that the engine does not take it for an operator's stop."""
    os.kill(int(inspect(container)["State"]["Pid"]), signal.SIGKILL)


def cores_of(pid: int) -> set[int]:
    return os.sched_getaffinity(pid)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _clean_environment() -> dict[str, str]:
    ours: Sequence[str] = ("MINI_VLLM_", "REDIS_", "WORKER", "GATEWAY_", "COMPOSE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(tuple(ours))}
