"""``GET /metrics`` and ``GET /workers``: what the service does, in numbers."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from api.deps import GatewayDep
from api.fleet import WorkerView, metrics_of, read_fleet

router = APIRouter()


class Workers(BaseModel):
    workers: tuple[WorkerView, ...]


@router.get("/metrics", response_model=dict[str, Any])
async def get_metrics(gateway: GatewayDep) -> JSONResponse:
    fleet = await read_fleet(gateway.reads, gateway.model)
    memory_mb = await run_in_threadpool(gateway.vitals.memory_mb)
    cpu_percent = gateway.vitals.cpu_percent()
    return JSONResponse(
        metrics_of(fleet, gateway_memory_mb=memory_mb, gateway_cpu_percent=cpu_percent)
    )


@router.get("/workers")
async def get_workers(gateway: GatewayDep) -> Workers:
    fleet = await read_fleet(gateway.reads, gateway.model)
    return Workers(workers=fleet.workers)
