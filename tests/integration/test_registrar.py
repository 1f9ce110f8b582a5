"""What the supervisor does in Redis about its workers, with a Redis that comes and goes."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from cli.layout import Layout
from cli.pool import Pool
from cli.registrar import Registrar
from cli.supervisor import Supervisor
from shared.connection import connect
from shared.keys import WORKERS
from shared.recovery import Sweeper
from shared.scripts import run_script
from shared.settings import load_settings
from tests.gateway import PlayedWorker
from tests.integration.conftest import MODEL
from tests.integration.test_supervisor import run_until
from tests.links import make_broker, submit
from tests.servers import Valkey, wait_for

SWEEPER = Sweeper(heartbeat_ttl_s=4, max_deaths=3, result_ttl_s=3600)


@contextmanager
def open_registrar(url: str) -> Iterator[Registrar]:
    registrar = Registrar(
        url,
        lambda client, who, counts: SWEEPER.bury(client, who, only_if_lapsed=False, counts=counts),
    )
    registrar.start()
    yield registrar
    registrar.close()


def take_a_job(client: Redis, incarnation: str) -> str:
    """The id of a job that this worker now holds."""
    worker = PlayedWorker(client, incarnation, MODEL)
    submit(make_broker(client, MODEL))
    return worker.take()


def deaths_of(client: Redis, job_id: str) -> int | None:
    """``None`` while a worker holds it."""
    fields: Any = client.hmget(f"mini-vllm:job:{job_id}", "worker", "deaths")
    return None if fields[0] else int(fields[1] or 0)


def test_a_burial_is_done_on_return(valkey: Valkey) -> None:
    client = connect(valkey.url)
    job_id = take_a_job(client, "worker-0.a")
    with open_registrar(valkey.url) as registrar:
        registrar.bury("worker-0.a")
        assert client.smembers(WORKERS) == set()
        assert deaths_of(client, job_id) == 1
    client.close()


def test_a_burial_that_failed_is_made_good_when_redis_is_back(
    valkey: Valkey, capsys: pytest.CaptureFixture[str]
) -> None:
    client = connect(valkey.url)
    jobs = [take_a_job(client, name) for name in ("worker-0.a", "worker-1.b")]
    with open_registrar(valkey.url) as registrar:
        valkey.stop()
        registrar.bury("worker-0.a")
        registrar.bury("worker-1.b")
        assert capsys.readouterr().err.count("is buried later") == 2
        valkey.start()
        wait_for(lambda: not client.smembers(WORKERS), "both are buried")
        assert [deaths_of(client, job_id) for job_id in jobs] == [1, 1]
    client.close()


def test_a_redis_that_hangs_holds_a_burial_up_but_not_its_caller(valkey: Valkey) -> None:
    client = connect(valkey.url)
    pid = int(client.info("server")["process_id"])
    job_id = take_a_job(client, "worker-0.a")
    with open_registrar(valkey.url) as registrar:
        os.kill(pid, signal.SIGSTOP)
        try:
            registrar.bury("worker-0.a")
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_for(lambda: not client.smembers(WORKERS), "it is buried")
        # Sent twice perhaps, as the first time was not answered; counted once.
        assert deaths_of(client, job_id) == 1
    client.close()


def test_only_who_was_there_can_have_left_and_only_while_redis_answers(valkey: Valkey) -> None:
    client = connect(valkey.url)
    PlayedWorker(client, "worker-0.a", MODEL)
    PlayedWorker(client, "worker-1.b", MODEL)
    with open_registrar(valkey.url) as registrar:

        def answer() -> list[bool]:
            return [registrar.has_left(f"worker-{name}") for name in ("0.a", "1.b", "2.c")]

        registrar.bury("worker-9.z")  # after it, the living are known
        assert answer() == [False, False, False]
        run_script(client, "bury", "worker-0.a", 0, 3, 3600, 1)
        wait_for(lambda: answer() == [True, False, False], "worker-0 has left")
        valkey.stop()
        wait_for(lambda: answer() == [False, False, False], "nothing is known any more")
        valkey.start()
        wait_for(lambda: answer() == [True, False, False], "it still has left")
    client.close()


def test_a_worker_that_others_declared_dead_and_that_does_not_end_is_killed(
    valkey: Valkey, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = load_settings(redis_url=valkey.url, data_dir=tmp_path, heartbeat_ttl_s=0.2)
    pool = Pool(settings, Layout(1, 1), None)
    child = pool.workers[0]
    make_command = child.make_command
    started: list[str] = []

    def make_idler(ready_fd: int) -> list[str]:
        """In the place of a worker whose heart is stuck."""
        command = make_command(ready_fd)
        started.append(command[command.index("--incarnation") + 1])
        return [sys.executable, "-c", "import time; time.sleep(600)"]

    child.make_command = make_idler
    client = connect(valkey.url)
    supervisor = Supervisor([child])
    pool.registrar.start()
    supervisor.start(child)
    child.policy.ready()
    PlayedWorker(client, started[0], MODEL)
    pool.registrar.bury("worker-9.z")  # after it, the living are known
    assert not pool.registrar.has_left(started[0])
    run_script(client, "bury", started[0], 0, 3, 3600, 1)
    run_until(supervisor, lambda: len(started) > 1)
    assert child.is_running
    assert capfd.readouterr().err.count("was declared dead by others and has not ended") == 1
    supervisor.stop([[child]], drain_s=0)
    pool.registrar.close()
    client.close()
