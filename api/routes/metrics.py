"""``GET /metrics`` and ``GET /workers``: what the service does, in numbers."""

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from api import examples
from api.deps import GatewayDep
from api.fleet import WorkerView, read_fleet
from api.metrics_view import Metrics, metrics_of
from api.mixed_weights import mixed_weights
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


@router.get(
    "/metrics",
    summary="Totals, queue depths, and each worker",
    responses={200: examples.shown(examples.METRICS), **_REFUSALS},
)
async def get_metrics(gateway: GatewayDep) -> Metrics:
    """Needs an admin key, or the key for metrics, where keys are set."""
    fleet = await read_fleet(gateway.reads, gateway.model)
    memory_mb = await run_in_threadpool(gateway.vitals.memory_mb)
    cpu_percent = gateway.vitals.cpu_percent()
    return metrics_of(fleet, gateway_memory_mb=memory_mb, gateway_cpu_percent=cpu_percent)


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
