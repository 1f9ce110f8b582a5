"""``POST /generate``: a job is accepted, or refused by name."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from api.bounds import check_bounds
from api.deps import CallerDep, GatewayDep, RequestIdDep
from api.validation import parse_generate_request
from shared.errors import BadRequest
from shared.protocol import GenerateRequest, JobStatus

router = APIRouter()

_IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")


class Links(BaseModel):
    job: str
    stream: str


class Accepted(BaseModel):
    job_id: str
    status: JobStatus
    position: int | None  #: 1 is next; null for a job that waits no longer
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


def check_idempotency_key(key: str) -> None:
    if not _IDEMPOTENCY_KEY.fullmatch(key):
        raise BadRequest(
            "Idempotency-Key: must be 1 to 255 printable ASCII characters without spaces",
            field="Idempotency-Key",
        )


_SCHEMA = GenerateRequest.model_json_schema()
#: The body is read here and not by FastAPI, so OpenAPI has to be told of it.
_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": _inlined(_SCHEMA, _SCHEMA["$defs"])}},
    }
}


@router.post(
    "/generate", status_code=202, openapi_extra=_BODY, responses={200: {"model": Accepted}}
)
async def generate(
    request: Request,
    response: Response,
    gateway: GatewayDep,
    request_id: RequestIdDep,
    caller: CallerDep,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Accepted:
    """202 with a new job; 200 with the one that this Idempotency-Key has named before."""
    if idempotency_key is not None:
        check_idempotency_key(idempotency_key)
    raw = await request.body()
    gateway.drain.check_admission()
    body = parse_generate_request(raw)
    check_bounds(body, gateway.settings)
    job = await run_in_threadpool(
        gateway.broker.submit,
        body,
        request_id,
        owner=caller.owner,
        idempotency_key=idempotency_key,
    )
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
