"""`mini-vllm up`: everything on this machine from one command, until Ctrl-C."""

import fcntl
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redis.exceptions import RedisError

from cli.embedded import START_TIMEOUT_S, EmbeddedValkey
from cli.job import DEFAULT_URL
from cli.layout import Layout, plan_layout
from cli.pool import Pool
from cli.supervisor import Supervisor
from cli.tune.settle import settle
from shared.connection import connect
from shared.converted import weights_path
from shared.cores import memory_available_bytes, usable_cores
from shared.errors import SetupError
from shared.exposure import check_exposure
from shared.footprint import footprint_of
from shared.gguf_header import read_facts
from shared.login import login_problem
from shared.logs import configure_logging, say
from shared.models import resolve_model
from shared.redis_url import shown_url
from shared.settings import Settings

#: Beyond the workers' own drain timeout: to park what did not finish, and to sign off.
_DRAIN_MARGIN_S = 10.0


def run(settings: Settings, *, workers: int | None, threads: int | None, own_redis: bool) -> None:
    """Returns after an orderly end. Raises ``SetupError`` with the reason for any other."""
    configure_logging("up", settings.log_level, settings.log_format)
    check_exposure(settings)
    with _locked(settings.data_dir):
        _check_port(settings.host, settings.port)
        settings, workers, threads = settle(settings, workers, threads)
        layout = _plan(settings, workers, threads)
        valkey = EmbeddedValkey(settings.data_dir) if own_redis else None
        if valkey:
            settings = settings.model_copy(update={"redis_url": valkey.url})
        try:
            _supervise(settings, Pool(settings, layout, valkey))
        finally:
            if valkey:
                valkey.close()


def _supervise(settings: Settings, pool: Pool) -> None:
    first = [pool.valkey] if pool.valkey else []
    supervisor = Supervisor([*first, *pool.workers, pool.gateway])
    supervisor.install_signal_handlers()
    run_file = settings.data_dir / "run.json"
    try:
        supervisor.start(*first)
        _wait_for_redis(settings.redis_url, supervisor, START_TIMEOUT_S if first else 5.0)
        if supervisor.is_stopping:
            return
        for child in first:
            child.policy.ready()
        pool.bury_leftovers()
        pool.registrar.start()
        supervisor.start(pool.gateway, *pool.workers)
        supervisor.run_until(lambda: pool.is_ready)
        if not supervisor.is_stopping:
            facts = {"pid": os.getpid(), "url": pool.url, "redis_url": settings.redis_url}
            run_file.unlink(missing_ok=True)
            run_file.touch(mode=0o600)  # the URL may hold a password
            run_file.write_text(json.dumps(facts))
            print(f"ready: {pool.url}", flush=True)
            print(_what_to_try(pool.url), flush=True)
        supervisor.run_until(lambda: False)
        if supervisor.num_stop_requests == 1:
            say("draining: running jobs may finish; Ctrl-C again ends at once")
    finally:
        run_file.unlink(missing_ok=True)
        supervisor.num_stop_requests = max(1, supervisor.num_stop_requests)
        pool.deaths_count = False
        if pool.gateway.announced:
            pool.gateway.signal(signal.SIGUSR1)  # it takes no more jobs, and tells how they end
        groups = [pool.workers, [pool.gateway], first]
        supervisor.stop(groups, settings.drain_timeout_s + _DRAIN_MARGIN_S)
        pool.registrar.close()


def _what_to_try(url: str) -> str:
    on_path = shutil.which("mini-vllm")
    command = "mini-vllm" if on_path else os.path.relpath(sys.argv[0])
    if url != DEFAULT_URL:
        command += f" generate --url {url}"
    else:
        command += " generate"
    return (
        f'try:   curl {url}/generate -d \'{{"prompt": "Explain gravity simply"}}\'\n'
        f'       {command} "Explain gravity simply"'
    )


def _wait_for_redis(url: str, supervisor: Supervisor, timeout_s: float) -> None:
    """Loading its data counts as being on the way. Raises ``SetupError``."""
    client = connect(url, timeout_s=2)
    end_s = time.monotonic() + timeout_s
    problem = ""

    def answers() -> bool:
        nonlocal problem
        try:
            return bool(client.ping())
        except RedisError as error:
            problem = str(error)
            if refusal := login_problem(error):
                raise SetupError(f"Redis at {shown_url(url)} refuses us: {refusal}") from None
        if time.monotonic() >= end_s:
            raise SetupError(f"Redis at {shown_url(url)} does not answer: {problem}")
        return False

    try:
        supervisor.run_until(answers)
    finally:
        client.close()


def _plan(settings: Settings, workers: int | None, threads: int | None) -> Layout:
    model = resolve_model(settings.model, settings.model_dir)
    weights = weights_path(model, settings.weight_format, settings.model_dir)
    footprint = footprint_of(
        read_facts(weights),
        slots=settings.slots,
        context_tokens=settings.context_tokens,
        sharing=settings.weights_sharing,
    )
    cores = usable_cores().cores
    layout = plan_layout(
        len(cores),
        # All workers map one file.
        max(0, memory_available_bytes() - footprint.shared_weights_bytes),
        footprint.private_bytes,
        workers,
        threads,
    )
    say(
        f"{model.name}: {layout.workers} workers x {layout.threads} threads on {len(cores)} cores, "
        f"{settings.slots} slots each, KV cache {footprint.kv_cache_bytes / 1e6:.0f} MB per worker"
    )
    return layout


@contextmanager
def _locked(data_dir: Path) -> Iterator[None]:
    """One `up` per data directory; the kernel drops the lock on any death."""
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (data_dir / "lock").open("a+")
    except OSError as error:
        raise SetupError(
            f"the data directory {data_dir} cannot be used: {error.strerror}; "
            "choose another one with --data-dir"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise SetupError(
                f"another `mini-vllm up` (pid {lock.read().strip() or 'unknown'}) uses the data "
                f"directory {data_dir}; give this one its own with --data-dir"
            ) from None
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _check_port(host: str, port: int) -> None:
    """Before anything else is started. The gateway binds it anew."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise SetupError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another one with --port"
        ) from None
