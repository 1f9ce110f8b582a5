"""``python -m worker``: takes its cores, loads a model, says that it is ready, and runs jobs."""

import argparse
import logging
import os
import signal
import socket
import sys
import time
from uuid import uuid4

from redis.exceptions import RedisError

from shared.connection import connect
from shared.cores import usable_cores
from shared.errors import ServiceError, SetupError
from shared.exit_codes import EXIT_BURIED, EXIT_CONFIG, EXIT_GIVEN_UP
from shared.logs import configure_logging
from shared.models import ResolvedModel, resolve_model
from shared.protocol import WorkerReport, WorkerState
from shared.recovery import Sweeper
from shared.settings import Settings, load_settings
from shared.stream import Buried
from worker.heart import Heart, Pulse
from worker.leases import pin
from worker.link import GivenUp
from worker.reporter import Reporter
from worker.service import Drain
from worker.serving import serve
from worker.waiting import wait_for_cores, when_redis_answers

log = logging.getLogger("worker")


def main() -> int:
    options = _parser().parse_args()
    try:
        given = {"redis_url": options.redis_url, "model": options.model, "threads": options.threads}
        settings = load_settings(**{k: v for k, v in given.items() if v is not None})
        configure_logging(options.name, settings.log_level)
        model = resolve_model(settings.model, settings.model_dir)
        return _run(settings, model, options)
    except ServiceError as error:
        print(f"{options.name}: error: {error.message}", file=sys.stderr)  # noqa: T201
        return EXIT_CONFIG
    except Buried:
        log.critical("declared dead by another process; its jobs go on elsewhere")
        return EXIT_BURIED
    except GivenUp:
        log.error("Redis did not come back in time; the jobs go on when it does")
        return EXIT_GIVEN_UP


def _run(settings: Settings, model: ResolvedModel, options: argparse.Namespace) -> int:
    usable = usable_cores()
    threads = settings.threads or len(usable.cores)
    if threads > len(usable.cores):
        raise SetupError(f"threads={threads}, but only {len(usable.cores)} cores are usable here")
    drain = Drain(settings.drain_timeout_s)
    reporter = Reporter(
        WorkerReport(
            name=options.name,
            incarnation=options.incarnation or f"{options.name}.{uuid4().hex[:8]}",
            pid=os.getpid(),
            host=socket.gethostname(),
            threads=threads,
            model=model.name,
            model_path=str(model.path),
            state=WorkerState.WAITING,
            started_at=round(time.time(), 3),
        )
    )

    def begin_drain(*_: object) -> None:
        drain.request()
        reporter.update(state=WorkerState.DRAINING)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, begin_drain)
    pulse = Pulse(settings.stall_limit_s)
    heart = Heart(
        connect(settings.redis_url),
        report=reporter.report,
        pulse=pulse,
        interval_s=settings.heartbeat_s,
        ttl_s=settings.heartbeat_ttl_s,
        sweeper=Sweeper.from_settings(settings),
    )
    if not when_redis_answers(heart.register, drain):
        return 0
    lease = wait_for_cores(settings, usable.candidates, threads, drain, options.ready_fd)
    if lease:
        pin(lease.cores)
        reporter.update(cores=lease.cores, state=WorkerState.LOADING)
        serve(settings, model, reporter, pulse, heart, drain, options.ready_fd)
    heart.stop()
    _sign_off(settings, reporter.facts.incarnation)
    return 0


def _sign_off(settings: Settings, incarnation: str) -> None:
    client = connect(settings.redis_url)
    try:
        sweeper = Sweeper.from_settings(settings)
        sweeper.bury(client, incarnation, only_if_lapsed=False, counts=False)
    except RedisError as error:
        log.warning("could not sign off: %s", error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m worker",
        description="One worker: takes cores of this host, loads a model and runs jobs from Redis. "
        "Every MINI_VLLM_* setting holds; the flags go before it.",
    )
    parser.add_argument("--redis-url", help="where the queues are (redis://, rediss://, unix://)")
    parser.add_argument("--model", help="a known name or the path of a GGUF file")
    parser.add_argument("--threads", type=int, help="cores to take; 0: all usable ones")
    parser.add_argument("--name", default="worker-0", help="its name in logs and in /workers")
    parser.add_argument("--incarnation", help="unique name of this process; drawn unless given")
    parser.add_argument("--ready-fd", type=int, help="descriptor to write `ready` or `waiting` to")
    return parser


if __name__ == "__main__":
    sys.exit(main())
