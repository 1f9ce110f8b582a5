"""What this is, whether it lives, and whether it can serve."""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from api import examples
from api.deps import GatewayDep
from api.fleet import Fleet, read_fleet
from api.responses import ANY_ROUTE, KEYED_ROUTE, refusals
from shared.errors import NoWorkerReady, RedisUnavailable, ShuttingDown, Unavailable
from shared.exposure import has_keys
from shared.protocol import WorkerState

router = APIRouter()

ROUTES = {
    "POST /generate": "submit a job",
    "GET /jobs": "list jobs, newest first: ?limit=, ?before=",
    "GET /jobs/<id>": "status and text; ?wait_s= waits for the end",
    "GET /jobs/<id>/stream": "server-sent events; Last-Event-ID or ?from= resumes",
    "DELETE /jobs/<id>": "cancel",
    "GET /metrics": "numbers for operators",
    "GET /workers": "who runs the jobs",
    "GET /health": "this process is alive",
    "GET /ready": "Redis and a worker are ready",
    "GET /docs": "the API, described",
}


class Description(BaseModel):
    name: str
    version: str
    model: str
    routes: dict[str, str]


class Alive(BaseModel):
    status: Literal["alive"] = "alive"


class Ready(BaseModel):
    status: Literal["ready"] = "ready"
    workers_ready: int


@router.get(
    "/",
    summary="What this is, and its routes",
    responses=refusals(*KEYED_ROUTE, others={200: examples.shown(examples.DESCRIPTION)}),
)
async def describe(request: Request, gateway: GatewayDep) -> Description:
    return Description(
        name="mini-vllm", version=request.app.version, model=gateway.model, routes=ROUTES
    )


@router.get(
    "/health",
    summary="This process is alive",
    responses=refusals(*ANY_ROUTE, others={200: examples.shown(examples.ALIVE)}),
)
async def health() -> Alive:
    """Asks nobody. Needs no key."""
    return Alive()


@router.get(
    "/ready",
    summary="A job would be run now",
    responses=refusals(
        *ANY_ROUTE,
        NoWorkerReady,
        ShuttingDown,
        RedisUnavailable,
        Unavailable,
        others={200: examples.shown(examples.READY)},
    ),
)
async def ready(gateway: GatewayDep) -> Ready:
    """503 with the reason while a job would have to wait, or would not be accepted. Needs no key."""
    gateway.drain.check_admission()
    fleet = await read_fleet(gateway.reads, gateway.model)
    num_ready = sum(
        worker.state == WorkerState.READY and worker.model == gateway.model
        for worker in fleet.workers
    )
    if not num_ready:
        # Who needs a key to see the workers does not see them here.
        raise NoWorkerReady(None if has_keys(gateway.settings) else _why(fleet, gateway.model))
    return Ready(workers_ready=num_ready)


def _why(fleet: Fleet, model: str) -> str:
    if not fleet.workers:
        return f"No worker is ready: none has reported; start one for the model {model}."
    states = ", ".join(f"{worker.name} ({worker.model}) {worker.state}" for worker in fleet.workers)
    return f"No worker is ready for the model {model}: {states}."
