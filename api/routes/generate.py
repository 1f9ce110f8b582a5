"""``POST /generate``: a job is accepted, or refused by name."""

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from api import examples
from api.admission import check_request
from api.deps import CallerDep, Gateway, GatewayDep, RequestIdDep
from api.job_view import note_of
from api.parameters import IDEMPOTENCY_KEY, IdempotencyKey
from api.responses import KEYED_ROUTE, header, refusals
from api.validation import parse_generate_request
from shared.broker import Submitted
from shared.errors import (
    BadRequest,
    BodyTimedOut,
    IdempotencyConflict,
    ModelNotFound,
    NoWorkerReady,
    Overloaded,
    PromptTooLong,
    QueueFull,
    RedisFull,
    ShuttingDown,
    TooManyJobs,
    UnsupportedParameter,
)
from shared.logs import note_job
from shared.protocol import JobStatus
from shared.shapes import check_shape

router = APIRouter()

#: What a route may raise that puts a job into its queue.
SUBMIT_REFUSALS = (
    *KEYED_ROUTE,
    BodyTimedOut,
    PromptTooLong,
    UnsupportedParameter,
    ModelNotFound,
    IdempotencyConflict,
    QueueFull,
    TooManyJobs,
    RedisFull,
    NoWorkerReady,
    ShuttingDown,
    Overloaded,
)


class Links(BaseModel):
    job: str
    stream: str


class Accepted(BaseModel):
    job_id: str
    status: JobStatus
    position: int | None  #: 1 is next; null for a job that waits no longer
    seed: int
    links: Links


def check_idempotency_key(*keys: str) -> None:
    """All that were sent: of two a proxy in front may have read the other one."""
    if len(keys) != 1 or not IDEMPOTENCY_KEY.fullmatch(keys[0]):
        raise BadRequest(
            "Idempotency-Key: must be one text of 1 to 255 printable ASCII characters without spaces",
            field="Idempotency-Key",
        )


_LOCATION = {"Location": header("the job's own path")}
_OF_JOB = {"parameters": {"job_id": "$response.body#/job_id"}}
_LINKS = {
    name: {"operationId": name, **_OF_JOB} for name in ("get_job", "stream_job", "cancel_job")
}
_NEW = examples.shown(examples.ACCEPTED, headers=_LOCATION, links=_LINKS)
_NAMED_BEFORE = {
    "model": Accepted,
    "description": "The job that this Idempotency-Key has named before",
    **_NEW,
}
SUBMIT_RESPONSES = refusals(*SUBMIT_REFUSALS, others={200: _NAMED_BEFORE, 202: _NEW})


async def read_submission(request: Request, gateway: Gateway) -> bytes:
    """The body of what is to become a job. Raises ``BadRequest`` for an ``Idempotency-Key`` that is none,
    and ``Unavailable`` while the gateway stops."""
    if keys := request.headers.getlist("Idempotency-Key"):
        check_idempotency_key(*keys)
    raw = await request.body()
    gateway.drain.check_admission()
    return raw


def accept(job: Submitted, response: Response) -> Accepted:
    """What is said of a job that is in its queue."""
    note_job(job.job_id)
    response.status_code = 202 if job.is_new else 200
    links = Links(job=f"/jobs/{job.job_id}", stream=f"/jobs/{job.job_id}/stream")
    response.headers["Location"] = links.job
    return Accepted(
        job_id=job.job_id,
        status=job.status,
        position=job.position,
        seed=job.seed,
        links=links,
    )


@router.post(
    "/generate",
    summary="Submit a job",
    status_code=202,
    response_description="Accepted; the job is in its queue",
    responses=SUBMIT_RESPONSES,
)
async def generate(
    request: Request,
    response: Response,
    gateway: GatewayDep,
    request_id: RequestIdDep,
    caller: CallerDep,
    idempotency_key: IdempotencyKey = None,
) -> Accepted:
    """Give either `prompt` or `messages`. The text is read at the job and its stream (`links`)."""
    body = parse_generate_request(await read_submission(request, gateway))
    model = await gateway.models.find(body.model)
    check_request(body, model, gateway.settings)
    if body.has_shape:  # to look at one may take 100 ms
        await run_in_threadpool(check_shape, body, model.tool_format)
    job = await run_in_threadpool(
        gateway.broker.submit,
        body,
        request_id,
        owner=caller.owner,
        idempotency_key=idempotency_key,
        model=model.name,
        note=note_of(body.user),
    )
    return accept(job, response)
