"""``python -m worker``: takes its cores, loads a model, says that it is ready, and runs jobs."""

import argparse
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
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
from worker.engine import Engine
from worker.heart import Heart, Pulse
from worker.intake import Intake
from worker.leases import CoreLease, lease_cores, pin
from worker.link import GivenUp, Link, is_passing
from worker.reporter import Reporter
from worker.service import Drain, Service

log = logging.getLogger("worker")

#: How long the self-check of a model may take; it says how far it came.
_SELF_CHECK_S = 2.0
_POLL_S = 0.25


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
    if not _when_redis_answers(heart.register, drain):
        return 0
    lease = _wait_for_cores(settings, usable.candidates, threads, drain, options.ready_fd)
    if lease:
        pin(lease.cores)
        reporter.update(cores=lease.cores, state=WorkerState.LOADING)
        _serve(settings, model, reporter, pulse, heart, drain, options.ready_fd)
    heart.stop()
    _sign_off(settings, reporter.facts.incarnation)
    return 0


def _serve(
    settings: Settings,
    model: ResolvedModel,
    reporter: Reporter,
    pulse: Pulse,
    heart: Heart,
    drain: Drain,
    ready_fd: int | None,
) -> None:
    # Only now: what llama.cpp's threads are pinned to is settled when its library is loaded.
    from worker.backends.llama import LlamaBackend

    facts = reporter.facts
    backend = LlamaBackend(
        model.path,
        slots=settings.slots,
        threads=facts.threads,
        context_tokens=settings.context_tokens,
    )
    if drain.is_requested:
        backend.close()
        return
    invariant = backend.check_batch_invariance(_SELF_CHECK_S)
    engine = Engine(
        backend,
        worker=facts.name,
        chunk_tokens=settings.prefill_chunk_tokens,
        budget_tokens=settings.prefill_budget_tokens,
    )
    reporter.num_generated = lambda: engine.num_generated
    reporter.num_active = lambda: engine.num_active
    reporter.update(
        slots=backend.facts.slots,
        context_tokens=backend.facts.context_tokens,
        kv_cache_bytes=backend.facts.kv_cache_bytes,
        model_description=backend.facts.description,
        has_chat_template=backend.facts.has_chat_template,
        llama_cpp=backend.facts.llama_cpp,
        batch_invariant=invariant,
    )

    def may_wait() -> bool:
        pulse.touch()
        return not drain.is_over

    link = Link(
        connect(settings.redis_url),
        incarnation=facts.incarnation,
        model=model.name,
        slots=settings.slots,
        result_ttl_s=settings.result_ttl_s,
        patience=settings.priority_patience,
        may_wait=may_wait,
    )
    intake = Intake(
        connect(settings.redis_url),
        model=model.name,
        incarnation=facts.incarnation,
        heartbeat_ttl_s=settings.heartbeat_ttl_s,
        result_ttl_s=settings.result_ttl_s,
        on_stop=engine.cancel,
        on_shutdown=drain.request,
    )
    if not _when_redis_answers(intake.open, drain):
        return
    heart.also = intake.beat
    reporter.update(state=WorkerState.READY)
    if not _when_redis_answers(heart.beat, drain):
        return
    log.info(
        "ready: %s on cores %s, %d threads, %d slots of %d tokens, KV cache %.0f MB, %s",
        backend.facts.description,
        ",".join(map(str, facts.cores)),
        facts.threads,
        backend.facts.slots,
        backend.facts.context_tokens,
        backend.facts.kv_cache_bytes / 1e6,
        "same tokens in any batch" if invariant else "tokens may depend on the batch (this format)",
    )
    _announce(ready_fd, "ready")
    Service(engine, link, intake, pulse, drain, facts.name).run()
    intake.close()
    backend.close()


def _when_redis_answers(action: Callable[[], None], drain: Drain) -> bool:
    """Does it as soon as Redis lets it; ``False`` if told to stop before that."""
    is_told = False
    while not drain.is_requested:
        try:
            action()
            return True
        except RedisError as error:
            if not is_passing(error):
                raise SetupError(f"Redis refuses this worker: {error}") from None
            if not is_told:
                log.warning("waiting for Redis: %s", error)
                is_told = True
        time.sleep(_POLL_S)
    return False


def _wait_for_cores(
    settings: Settings, usable: tuple[int, ...], threads: int, drain: Drain, ready_fd: int | None
) -> CoreLease | None:
    """``None`` if told to stop before cores were free."""
    is_told = False
    while not drain.is_requested:
        lease = lease_cores(settings.host_dir, usable, threads)
        if lease:
            return lease
        if not is_told:
            log.info("waiting: fewer than %d of the cores %s are free", threads, list(usable))
            _announce(ready_fd, "waiting")
            is_told = True
        time.sleep(_POLL_S)
    return None


def _sign_off(settings: Settings, incarnation: str) -> None:
    client = connect(settings.redis_url)
    try:
        sweeper = Sweeper.from_settings(settings)
        sweeper.bury(client, incarnation, only_if_lapsed=False, counts=False)
    except RedisError as error:
        log.warning("could not sign off: %s", error)


def _announce(ready_fd: int | None, word: str) -> None:
    if ready_fd is not None:
        os.write(ready_fd, f"{word}\n".encode())


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
