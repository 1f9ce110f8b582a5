"""A worker's own loop, link and RQ books over a played model, in this process. It does not beat: its
first beat lasts as long as an experiment."""

from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis

from experiments.own_valkey import url_of
from shared.connection import connect
from shared.protocol import WorkerReport, WorkerState, to_wire
from shared.scripts import run_script
from shared.settings import load_settings
from worker.backends.base import Backend
from worker.engine import Engine
from worker.heart import Pulse
from worker.intake import Intake
from worker.link import Link
from worker.pace import Pace
from worker.service import Drain, Service

MODEL, WORKER = "played", "worker-0.played"
_BEAT_MS = 3_600_000


@contextmanager
def played_worker(client: Redis, backend: Backend, drain: Drain) -> Iterator[Service]:
    """Known to Redis and RQ; whoever has it runs it, and has ``drain`` end it."""
    settings = load_settings()
    report = WorkerReport(
        name="worker-0", incarnation=WORKER, pid=1, host="h", model=MODEL, state=WorkerState.READY
    )
    run_script(client, "register", WORKER, _BEAT_MS, to_wire(report), MODEL)
    engine = Engine(
        backend,
        worker="worker-0",
        chunk_tokens=settings.prefill_chunk_tokens,
        pace=Pace(settings.prefill_stall_ms / 1000),
    )
    line, books = connect(url_of(client)), connect(url_of(client))
    link = Link(
        line,
        incarnation=WORKER,
        model=MODEL,
        slots=backend.facts.slots,
        result_ttl_s=settings.result_ttl_s,
        patience=settings.priority_patience,
        may_wait=lambda: False,
    )
    intake = Intake(
        books,
        model=MODEL,
        incarnation=WORKER,
        heartbeat_ttl_s=_BEAT_MS / 1000,
        result_ttl_s=settings.result_ttl_s,
        on_stop=engine.cancel,
        on_shutdown=drain.request,
    )
    intake.open()
    try:
        yield Service(engine, link, intake, Pulse(60), drain, "worker-0")
    finally:
        intake.close()
        line.close()
        books.close()
