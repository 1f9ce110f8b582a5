"""``python -m worker``: takes its cores, loads a model, says that it is ready, and runs jobs."""

import argparse
import logging
import os
import signal
import socket
import sys
import time
from contextlib import closing
from uuid import uuid4

from redis.exceptions import RedisError

from shared.connection import connect
from shared.converted import weights_path
from shared.cores import usable_cores
from shared.errors import ServiceError, SetupError
from shared.exit_codes import EXIT_BURIED, EXIT_CONFIG, EXIT_GIVEN_UP
from shared.gguf_header import read_facts
from shared.host import host_dir_id
from shared.logs import begin_logging, configure_logging
from shared.logs.level import LevelFollower
from shared.models import ResolvedModel, model_name, resolve_model
from shared.protocol import WorkerReport, WorkerState
from shared.recovery import Sweeper
from shared.settings import Settings, load_settings
from shared.stream import Buried
from worker.caching import SNAPSHOTS_FOLDER
from worker.heart import Heart, Pulse
from worker.last_out import clear_if_last
from worker.leases import pin
from worker.link import GivenUp
from worker.names import fitting_name, host_name
from worker.obituary import publish_failure
from worker.reporter import Reporter
from worker.search import CoreSearch
from worker.service import Drain
from worker.serving import serve
from worker.tuned import use_record
from worker.waiting import appear, wait_for_cores, when_redis_answers

log = logging.getLogger("worker")


def main() -> int:
    options = _parser().parse_args()
    begin_logging(options.name)
    flags = {"redis_url": options.redis_url, "model": options.model, "threads": options.threads}
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        settings = load_settings(**given)
        about_all = {"worker": options.name, "model": model_name(settings.model)}
        configure_logging(options.name, settings.log_level, settings.log_format, **about_all)
        model = resolve_model(settings.model, settings.model_dir)
        settings = use_record(settings, model)
        weights = weights_path(model, settings.weight_format, settings.model_dir)
        model = ResolvedModel(
            model.name, weights
        )  # its queues are the model's, whatever the format
        read_facts(model.path)  # what is no model is said before anything is waited for
        return _run(settings, model, options)
    except ServiceError as error:
        publish_failure(options.name, error.message, given)
        return EXIT_CONFIG
    except Buried:
        log.critical("declared dead by another process; its jobs go on elsewhere")
        return EXIT_BURIED
    except GivenUp:
        log.error("Redis did not come back in time; the jobs go on when it does")
        return EXIT_GIVEN_UP


def _run(settings: Settings, model: ResolvedModel, options: argparse.Namespace) -> int:
    usable = usable_cores()
    threads = settings.threads
    if threads > len(usable.cores):
        raise SetupError(
            f"MINI_VLLM_THREADS (--threads) is {threads}, but only {len(usable.cores)} cores are "
            "usable here; give no more than that, or 0 for a share of them"
        )
    drain = Drain(settings.drain_timeout_s)
    reporter = _introduce(model, options)

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
        counts=reporter.totals,
    )
    present = appear(settings.host_dir, reporter.facts.incarnation, drain)
    if present is None:
        return 0
    reporter.update(host_dir_id=host_dir_id(settings.host_dir))
    with closing(present) as presence:

        def register() -> None:
            presence.touch()  # the heart starts with the first beat that Redis takes
            heart.register()

        heart.sign = presence.touch
        heart.follow_level = LevelFollower(settings.log_level).follow
        if not when_redis_answers(settings.redis_url, register, drain):
            return 0
        search = CoreSearch(
            settings.host_dir, usable, presence, threads=threads, expected=settings.workers
        )
        try:
            lease = wait_for_cores(search, drain, options.ready_fd)
            if lease:
                pin(lease.cores)
                facts = {"cores": lease.cores, "threads": len(lease.cores)}
                reporter.update(**facts, state=WorkerState.LOADING)
                serve(settings, model, reporter, pulse, heart, drain, options.ready_fd)
        except ServiceError:
            # What says why it failed is not to stand beside one that seems to load.
            _leave(settings, heart, reporter.facts.incarnation)
            raise
        _leave(settings, heart, reporter.facts.incarnation)
    clear_if_last(settings.host_dir, settings.host_dir / SNAPSHOTS_FOLDER)
    return 0


def _introduce(model: ResolvedModel, options: argparse.Namespace) -> Reporter:
    return Reporter(
        WorkerReport(
            name=options.name,
            incarnation=options.incarnation or f"{options.name}.{uuid4().hex[:8]}",
            pid=os.getpid(),
            host=socket.gethostname(),
            model=model.name,
            model_path=str(model.path),
            state=WorkerState.WAITING,
            started_at=round(time.time(), 3),
        )
    )


def _leave(settings: Settings, heart: Heart, incarnation: str) -> None:
    heart.stop()
    client = connect(settings.redis_url)
    try:
        heart.last_beat()
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
    parser.add_argument("--threads", type=int, help="cores to take; 0: a share of the free ones")
    parser.add_argument(
        "--name",
        type=fitting_name,
        default=host_name(),
        help="its name in logs and in /workers; default: the host's",
    )
    parser.add_argument(
        "--incarnation",
        type=fitting_name,
        help="unique name of this process; drawn unless given",
    )
    parser.add_argument("--ready-fd", type=int, help="descriptor to write `ready` or `waiting` to")
    return parser


if __name__ == "__main__":
    sys.exit(main())
