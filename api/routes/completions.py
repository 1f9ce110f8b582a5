"""``/v1/completions``: OpenAI's completions, each of them a job."""

from typing import Any

from fastapi import APIRouter, Request, Response

from api.completions.form import Endpoint
from api.completions.later import read_later
from api.completions.refusals import FETCH, SUBMIT
from api.completions.serve import serve_call
from api.completions.submission import Origin
from api.deps import CallerDep, GatewayDep, RequestIdDep
from api.parameters import CompletionCallId, IdempotencyKey
from api.routes.generate import check_idempotency_key

router = APIRouter()

ENDPOINT: Endpoint = "/v1/completions"


@router.post(
    ENDPOINT,
    summary="Continue a text",
    response_model=None,
    responses=SUBMIT[ENDPOINT],
)
async def create_completion(
    request: Request,
    gateway: GatewayDep,
    request_id: RequestIdDep,
    caller: CallerDep,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """At once, as a stream (`stream`), or to be fetched later (`background`). A client that leaves ends
    its jobs, unless it sent an Idempotency-Key, with which it may come again for them."""
    if idempotency_key is not None:
        check_idempotency_key(*request.headers.getlist("Idempotency-Key"))
    origin = Origin(request_id, caller.owner, idempotency_key)
    return await serve_call(ENDPOINT, request, gateway, caller, origin)


@router.get(
    ENDPOINT + "/{call_id}",
    summary="The completion that was submitted before",
    responses=FETCH[ENDPOINT],
)
async def get_completion(
    call_id: CompletionCallId, gateway: GatewayDep, caller: CallerDep
) -> dict[str, Any]:
    """`status` is `queued`, `in_progress`, `completed`, `failed` or `cancelled`; `choices` are there
    when it is `completed`."""
    return await read_later(gateway, ENDPOINT, call_id, caller)
