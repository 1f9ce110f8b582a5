"""What `doctor` looks at: each check gives findings, and none of them changes anything."""

import fcntl
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any, Literal

import httpx
from redis.exceptions import RedisError

from cli.pull import has_model
from shared.connection import connect
from shared.cores import memory_available_bytes, num_periods, usable_cores
from shared.errors import ServiceError
from shared.login import login_problem, rights_problem
from shared.models import KNOWN_MODELS, resolve_model
from shared.redis_url import shown_url
from shared.settings import Settings

Level = Literal["ok", "warn", "fail"]
_OUR_PACKAGES = ("shared", "api", "worker", "cli", "experiments")
_MIN_REDIS = (7, 0)


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    what: str
    todo: str = ""


def check_software() -> Iterator[Finding]:
    yield Finding("ok", f"Python {platform.python_version()}")
    owners = packages_distributions()
    for name in _OUR_PACKAGES:
        others = sorted(set(owners.get(name, [])) - {"mini-vllm"})
        if others:
            yield Finding(
                "fail",
                f"the package `{name}` also comes from {', '.join(others)}",
                "install Mini vLLM in a virtual environment of its own: make up",
            )
    try:
        yield Finding("ok", f"llama-cpp-python {version('llama-cpp-python')}")
    except PackageNotFoundError:
        yield Finding("fail", "llama-cpp-python is not installed", "run: make setup")


def check_cpu() -> Iterator[Finding]:
    flags = _cpu_flags()
    if flags:
        names = [
            n for n in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8") if n in flags
        ]
        level: Level = "ok" if "avx2" in flags else "warn"
        yield Finding(
            level,
            f"CPU features: {', '.join(names) or 'no AVX2'}",
            "" if level == "ok" else "inference is slow without AVX2",
        )
    usable = usable_cores()
    total = os.cpu_count() or 1
    yield Finding("ok", f"{len(usable.cores)} of {total} cores are usable: {list(usable.cores)}")
    if usable.quota is not None and usable.quota < usable.affinity:
        yield Finding("ok", f"a CPU quota allows {usable.quota:g} of {usable.affinity} cores")
    throttled, _ = num_periods() or (0, 0)
    if throttled:
        yield Finding(
            "warn",
            f"the CPU quota has stopped this machine {throttled} times",
            "give it whole cores (a cpuset), or fewer workers and threads",
        )


def check_memory() -> Iterator[Finding]:
    free_gb = memory_available_bytes() / 1e9
    if free_gb < 1.5:
        yield Finding(
            "warn", f"{free_gb:.1f} GB of memory are available", "set MINI_VLLM_CONTEXT_TOKENS=1024"
        )
    else:
        yield Finding("ok", f"{free_gb:.1f} GB of memory are available")


def check_model(settings: Settings) -> Iterator[Finding]:
    known = KNOWN_MODELS.get(settings.model)
    try:
        path = resolve_model(settings.model, settings.model_dir).path
    except ServiceError as error:
        yield Finding("fail", error.message, "fetch it, or give --model PATH")
        return
    if known and not has_model(known, settings.model_dir):
        yield Finding("fail", f"{path} is damaged", f"run: mini-vllm model pull {known.name}")
    else:
        yield Finding("ok", f"model {settings.model}: {path}")


def check_directories(settings: Settings) -> Iterator[Finding]:
    for name, folder in (("data", settings.data_dir), ("host", settings.host_dir)):
        existing = next(p for p in (folder, *folder.absolute().parents) if p.exists())
        if os.access(existing, os.W_OK):
            yield Finding("ok", f"{name} directory: {folder}")
        else:
            key = f"MINI_VLLM_{name.upper()}_DIR"
            yield Finding("fail", f"the {name} directory {folder} cannot be written", f"set {key}")
    holder = _lock_holder(settings.data_dir / "lock")
    if holder:
        yield Finding("ok", f"an `up` (pid {holder}) runs on this data directory")


def check_service(running: dict[str, Any] | None) -> Iterator[Finding]:
    if running is None:
        yield Finding("ok", "no `up` is running on this data directory; start it with: make up")
        return
    url = str(running["url"])
    try:
        response = httpx.get(f"{url}/ready", timeout=5)
        answer = response.json()
    except (httpx.HTTPError, ValueError) as error:
        yield Finding("fail", f"{url} does not answer: {error}", "see what `up` prints")
        return
    if response.status_code == httpx.codes.OK:
        yield Finding("ok", f"{url} is ready with {answer['workers_ready']} workers")
        for warning in answer.get("warnings", ()):
            todo = "GET /workers says which; give all the same MINI_VLLM_WEIGHT_FORMAT and file"
            yield Finding("warn", warning, todo)
    else:
        yield Finding("fail", f"{url}: {answer['error']['message']}", "see what `up` prints")


def check_redis(url: str) -> Iterator[Finding]:
    client, where = connect(url, timeout_s=3), shown_url(url)
    try:
        info: Any = client.info()
        number = str(info.get("valkey_version") or info["redis_version"])
        is_old = tuple(int(part) for part in number.split(".")[:2]) < _MIN_REDIS
        name = "Valkey" if "valkey_version" in info else "Redis"
        if is_old:
            yield Finding("fail", f"{name} {number} at {where}", "Redis 7.0 or Valkey is needed")
        else:
            yield Finding("ok", f"{name} {number} at {where}")
        if info.get("maxmemory_policy") != "noeviction":
            yield Finding(
                "fail",
                f"its maxmemory-policy is {info.get('maxmemory_policy')}: jobs may be evicted",
                "set maxmemory-policy noeviction",
            )
        if not info.get("aof_enabled"):
            yield Finding(
                "warn", "it keeps no append-only file: jobs die with it", "set appendonly yes"
            )
    except RedisError as error:
        if refusal := login_problem(error) or rights_problem(error):
            yield Finding("fail", f"Redis at {where} refuses us", refusal)
        else:
            todo = "start it, or mend the URL"
            yield Finding("fail", f"Redis at {where} does not answer: {error}", todo)
    finally:
        client.close()


def running_service(data_dir: Path) -> dict[str, Any] | None:
    """What a running `up` wrote down of itself."""
    try:
        facts: dict[str, Any] = json.loads((data_dir / "run.json").read_text())
    except (OSError, ValueError):
        return None
    return facts if _lock_holder(data_dir / "lock") else None


def _lock_holder(path: Path) -> str | None:
    try:
        with path.open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return None
            except BlockingIOError:
                return lock.read().strip() or "unknown"
    except OSError:
        return None


def _cpu_flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return next((set(x.split(":", 1)[1].split()) for x in lines if x.startswith("flags")), set())
