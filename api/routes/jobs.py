"""``/jobs``: what became of a job, and its end before time."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from api import examples
from api.deps import CallerDep, Gateway, GatewayDep
from api.job_reads import Cursor, find_record, read_job, read_page
from api.job_view import JobSummary, JobView
from api.keyring import Caller
from api.parameters import Before, JobId, WaitS
from api.responses import KEYED_ROUTE, refusals
from shared.errors import BadRequest, JobNotFound, RedisFull

router = APIRouter()

#: How long DELETE waits for a running job to end; a worker looks after each step.
CANCEL_WAIT_S = 2.0

_JOB = examples.shown(examples.JOB)
_CANCELLING = examples.shown(
    examples.CANCELLING, model=JobView, description="Its worker has not come to it yet"
)


class JobPage(BaseModel):
    jobs: list[JobSummary]
    next: str | None  #: for ``?before=``; null on the last page


@router.get(
    "/jobs",
    summary="List jobs, newest first",
    responses=refusals(*KEYED_ROUTE, others={200: examples.shown(examples.PAGE)}),
)
async def list_jobs(
    gateway: GatewayDep,
    caller: CallerDep,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Before = None,
) -> JobPage:
    """Those of the key that asks; an admin key sees all. `next` leads to the page after."""
    cursor = None if before is None else Cursor.parse(before)
    jobs, following = await read_page(gateway.reads, limit, cursor, caller)
    return JobPage(jobs=jobs, next=None if following is None else str(following))


@router.get(
    "/jobs/{job_id}",
    summary="Status and text of a job",
    responses=refusals(*KEYED_ROUTE, JobNotFound, others={200: _JOB}),
)
async def get_job(
    job_id: JobId,
    gateway: GatewayDep,
    caller: CallerDep,
    wait_s: WaitS = 0,
) -> JobView:
    """The text so far, usage and timings; of a job that failed, why."""
    longest_s = gateway.settings.max_wait_s
    if wait_s > longest_s:
        raise BadRequest(
            f"wait_s: must be less than or equal to {longest_s:g} (got {wait_s:g})", field="wait_s"
        )
    return await _job_at_end(gateway, job_id, caller, wait_s)


@router.delete(
    "/jobs/{job_id}",
    summary="Cancel a job",
    response_description="The job as it ended",
    responses=refusals(*KEYED_ROUTE, JobNotFound, RedisFull, others={200: _JOB, 202: _CANCELLING}),
)
async def cancel_job(
    job_id: JobId, response: Response, gateway: GatewayDep, caller: CallerDep
) -> JobView:
    """A worker looks after each step, so that is soon; again is harmless. The text so far is kept."""
    await find_record(gateway.reads, job_id, caller)
    verdict = await run_in_threadpool(gateway.broker.cancel, job_id)
    if verdict == "missing":
        raise JobNotFound()
    wait_s = CANCEL_WAIT_S if verdict == "cancelling" else 0
    job = await _job_at_end(gateway, job_id, caller, wait_s)
    response.status_code = 200 if job.status.is_final else 202
    return job


async def _job_at_end(gateway: Gateway, job_id: str, caller: Caller, wait_s: float) -> JobView:
    """The job when it ends, or as it is when the time has passed."""
    job = await read_job(gateway, job_id, caller)
    if wait_s and not job.status.is_final:
        async with gateway.hub.follow(job_id) as followed:
            await followed.over(wait_s)
        job = await read_job(gateway, job_id, caller)
    return job
