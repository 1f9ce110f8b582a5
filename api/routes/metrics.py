"""``GET /metrics`` and ``GET /workers``: what the service does, in numbers."""

from itertools import chain

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from api import examples
from api.deps import Gateway, GatewayDep
from api.fleet import Fleet, WorkerView, read_fleet
from api.metrics_view import Metrics, metrics_of
from api.mixed_weights import mixed_weights
from api.prometheus.accept import wants_text
from api.prometheus.counters import counters_of, histograms_of
from api.prometheus.gauges import gauges_of
from api.prometheus.text import render
from api.responses import KEYED_ROUTE, refusals
from shared.errors import Unavailable
from shared.failures import FailedStart, read_failures

router = APIRouter()

_REFUSALS = refusals(*KEYED_ROUTE, Unavailable)


class Workers(BaseModel):
    workers: tuple[WorkerView, ...]
    failures: tuple[FailedStart, ...] = Field(
        description="workers that could not start in the last ten minutes, the newest first"
    )
    warnings: tuple[str, ...] = Field(
        description="what works, and may not be meant: workers of one model with different weights"
    )


_TEXT = {"text/plain": {"schema": {"type": "string"}, "example": examples.METRICS_TEXT}}


@router.get(
    "/metrics",
    summary="Totals, queue depths, latencies, and each worker",
    response_model=Metrics,
    responses={200: examples.shown(examples.METRICS), **_REFUSALS},
)
async def get_metrics(request: Request, gateway: GatewayDep) -> Response | Metrics:
    """JSON, or Prometheus' text where `Accept` asks for `text/plain` or `application/openmetrics-text`, as
    Prometheus does. Needs an admin key, or the key for metrics, where keys are set."""
    accept = ",".join(request.headers.getlist("accept"))
    if wants_text(accept):
        return await _text(gateway, accept)
    return (await _read(gateway))[1]


@router.get(
    "/metrics/prometheus",
    summary="The metrics as Prometheus' text",
    response_class=Response,
    responses={200: {"description": "Prometheus or OpenMetrics", "content": _TEXT}, **_REFUSALS},
)
async def get_prometheus_metrics(request: Request, gateway: GatewayDep) -> Response:
    """Of OpenMetrics where `Accept` asks for it. Needs an admin key, or the key for metrics, where keys are
    set."""
    return await _text(gateway, ",".join(request.headers.getlist("accept")))


async def _read(gateway: Gateway) -> tuple[Fleet, Metrics]:
    fleet = await read_fleet(gateway.reads, gateway.model)
    memory_mb = await run_in_threadpool(gateway.vitals.memory_mb)
    cpu_percent = gateway.vitals.cpu_percent()
    return fleet, metrics_of(fleet, gateway_memory_mb=memory_mb, gateway_cpu_percent=cpu_percent)


async def _text(gateway: Gateway, accept: str) -> Response:
    fleet, metrics = await _read(gateway)
    gauges = gauges_of(
        fleet,
        metrics,
        num_failed_starts=len(await read_failures(gateway.reads)),
        max_queued_jobs=gateway.settings.max_queued_jobs,
    )
    text, content_type = render(chain(gauges, counters_of(fleet), histograms_of(fleet)), accept)
    return Response(text, media_type=content_type, headers={"Vary": "Accept"})


@router.get(
    "/workers",
    summary="Who runs the jobs",
    responses={200: examples.shown(examples.WORKERS), **_REFUSALS},
)
async def get_workers(gateway: GatewayDep) -> Workers:
    """Cores, threads, model, state and slots of each, and why others could not start. Needs an admin
    key, where keys are set."""
    fleet = await read_fleet(gateway.reads, gateway.model)
    return Workers(
        workers=fleet.workers,
        failures=await read_failures(gateway.reads),
        warnings=mixed_weights(fleet.workers),
    )
