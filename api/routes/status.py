"""What this is, whether it lives, and whether it can serve."""

from typing import Any

from fastapi import APIRouter, Request

from api.deps import GatewayDep
from api.fleet import Fleet, read_fleet
from shared.errors import NoWorkerReady
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


@router.get("/")
async def describe(request: Request, gateway: GatewayDep) -> dict[str, Any]:
    return {
        "name": "mini-vllm",
        "version": request.app.version,
        "model": gateway.model,
        "routes": ROUTES,
    }


@router.get("/health")
async def health() -> dict[str, str]:
    return {"status": "alive"}


@router.get("/ready")
async def ready(gateway: GatewayDep) -> dict[str, Any]:
    """503 with the reason while a job would have to wait, or would not be accepted."""
    gateway.drain.check_admission()
    fleet = await read_fleet(gateway.reads, gateway.model)
    num_ready = sum(
        worker.state == WorkerState.READY and worker.model == gateway.model
        for worker in fleet.workers
    )
    if not num_ready:
        raise NoWorkerReady(_why(fleet, gateway.model))
    return {"status": "ready", "workers_ready": num_ready}


def _why(fleet: Fleet, model: str) -> str:
    if not fleet.workers:
        return f"No worker is ready: none has reported; start one for the model {model}."
    states = ", ".join(f"{worker.name} ({worker.model}) {worker.state}" for worker in fleet.workers)
    return f"No worker is ready for the model {model}: {states}."
