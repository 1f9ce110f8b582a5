"""``/jobs``: what became of a job, and its end before time."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from api.deps import CallerDep, Gateway, GatewayDep
from api.job_reads import Cursor, find_record, read_job, read_page
from api.job_view import JobSummary, JobView
from api.keyring import Caller
from shared.errors import BadRequest, JobNotFound

router = APIRouter()

#: How long DELETE waits for a running job to end; a worker looks after each step.
CANCEL_WAIT_S = 2.0


class JobPage(BaseModel):
    jobs: list[JobSummary]
    next: str | None  #: for ``?before=``; null on the last page


@router.get("/jobs")
async def list_jobs(
    gateway: GatewayDep,
    caller: CallerDep,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: str | None = None,
) -> JobPage:
    cursor = None if before is None else Cursor.parse(before)
    jobs, following = await read_page(gateway.reads, limit, cursor, caller)
    return JobPage(jobs=jobs, next=None if following is None else str(following))


@router.get("/jobs/{job_id}")
async def get_job(
    job_id: str,
    gateway: GatewayDep,
    caller: CallerDep,
    wait_s: Annotated[float, Query(ge=0)] = 0,
) -> JobView:
    longest_s = gateway.settings.max_wait_s
    if wait_s > longest_s:
        raise BadRequest(
            f"wait_s: must be less than or equal to {longest_s:g} (got {wait_s:g})", field="wait_s"
        )
    return await _job_at_end(gateway, job_id, caller, wait_s)


@router.delete("/jobs/{job_id}", responses={202: {"model": JobView}})
async def cancel_job(
    job_id: str, response: Response, gateway: GatewayDep, caller: CallerDep
) -> JobView:
    """200 with the job as it ended, or 202 if its worker has not come to it yet."""
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
