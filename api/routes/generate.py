"""``POST /generate``: a job is accepted, or refused by name."""

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from api.bounds import check_bounds
from api.deps import GatewayDep, RequestIdDep
from api.validation import parse_generate_request
from shared.protocol import GenerateRequest, JobStatus

router = APIRouter()


class Links(BaseModel):
    job: str
    stream: str


class Accepted(BaseModel):
    job_id: str
    status: JobStatus
    position: int
    seed: int
    links: Links


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """Without references: they would point out of the place in OpenAPI where it stands."""
    if isinstance(schema, list):
        return [_inlined(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    whole = schema | definitions.get(str(schema.get("$ref")).rpartition("/")[2], {})
    return {k: _inlined(v, definitions) for k, v in whole.items() if k not in ("$ref", "$defs")}


_SCHEMA = GenerateRequest.model_json_schema()
#: The body is read here and not by FastAPI, so OpenAPI has to be told of it.
_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": _inlined(_SCHEMA, _SCHEMA["$defs"])}},
    }
}


@router.post("/generate", status_code=202, openapi_extra=_BODY)
async def generate(
    request: Request, response: Response, gateway: GatewayDep, request_id: RequestIdDep
) -> Accepted:
    body = parse_generate_request(await request.body())
    check_bounds(body, gateway.settings)
    job = await run_in_threadpool(gateway.broker.submit, body, request_id)
    links = Links(job=f"/jobs/{job.job_id}", stream=f"/jobs/{job.job_id}/stream")
    response.headers["Location"] = links.job
    return Accepted(
        job_id=job.job_id,
        status=JobStatus.QUEUED,
        position=job.position,
        seed=job.seed,
        links=links,
    )
