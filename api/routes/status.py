"""What this is, whether it lives, and whether it can serve."""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from api import examples
from api.access import sees_workers
from api.deps import GatewayDep
from api.fleet import read_fleet, why_not_ready
from api.mixed_weights import mixed_weights
from api.responses import ANY_ROUTE, KEYED_ROUTE, refusals
from shared.errors import NoWorkerReady, RedisUnavailable, ShuttingDown, Unavailable
from shared.failures import read_failures
from shared.protocol import WorkerState

router = APIRouter()

ROUTES = {
    "POST /generate": "submit a job",
    "GET /jobs": "list jobs, newest first: ?limit=, ?before=",
    "GET /jobs/<id>": "status and text; ?wait_s= waits for the end",
    "GET /jobs/<id>/stream": "server-sent events; Last-Event-ID or ?from= resumes",
    "DELETE /jobs/<id>": "cancel",
    "POST /v1/chat/completions": "OpenAI's chat completions; GET /v1/chat/completions/<id> fetches one",
    "POST /v1/completions": "OpenAI's completions; GET /v1/completions/<id> fetches one",
    "GET /v1/models": "the models that can be asked for; GET /v1/models/<id> for one",
    "POST /cache/warm": "compute the beginning of prompts ahead",
    "POST /tokenize": "text to tokens",
    "POST /detokenize": "tokens to text",
    "POST /apply-template": "a chat as the prompt of the model",
    "GET /metrics": "numbers for operators",
    "GET /workers": "who runs the jobs",
    "GET /live": "server-sent events: the last hour, and the service as it changes",
    "GET /dashboard": "the same as a page, with a playground",
    "PUT /admin/log-level": "how much all processes log; GET tells, DELETE: as in their settings",
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
    warnings: tuple[str, ...] | None = Field(
        None,
        description="there only if there are some: workers of one model with different weights",
    )


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
    response_model_exclude_none=True,
    responses=refusals(
        *ANY_ROUTE,
        NoWorkerReady,
        ShuttingDown,
        RedisUnavailable,
        Unavailable,
        others={200: examples.shown(examples.READY)},
    ),
)
async def ready(request: Request, gateway: GatewayDep) -> Ready:
    """503 with the reason while a job would have to wait, or would not be accepted. Needs no key; where
    keys are set, an admin key has it name the workers that are not ready, and those that failed to start."""
    gateway.drain.check_admission()
    fleet = await read_fleet(gateway.reads, gateway.model)
    num_ready = sum(
        worker.state == WorkerState.READY and worker.model == gateway.model
        for worker in fleet.workers
    )
    if not num_ready:
        if not sees_workers(request.app.state.keyring, request.headers):
            raise NoWorkerReady()
        failures = await read_failures(gateway.reads)
        raise NoWorkerReady(why_not_ready(fleet.workers, failures, gateway.model))
    return Ready(workers_ready=num_ready, warnings=mixed_weights(fleet.workers) or None)
