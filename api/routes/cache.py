"""``POST /cache/warm``: what prompts begin with is computed before they come."""

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from api.admission import check_request
from api.bounds import check_text
from api.deps import CallerDep, GatewayDep, RequestIdDep
from api.keyring import Role
from api.parameters import IdempotencyKey
from api.routes.generate import SUBMIT_RESPONSES, Accepted, accept, read_submission
from api.validation import parse_body
from api.warm_body import WarmBody
from shared.errors import Forbidden

router = APIRouter()

PATH = "/cache/warm"


@router.post(
    PATH,
    summary="Compute the beginning of prompts ahead",
    status_code=202,
    response_description="Accepted; the job that computes it is in its queue",
    responses=SUBMIT_RESPONSES,
)
async def warm_cache(
    request: Request,
    response: Response,
    gateway: GatewayDep,
    request_id: RequestIdDep,
    caller: CallerDep,
    idempotency_key: IdempotencyKey = None,
) -> Accepted:
    """Give either `text` or `messages`. When the job has completed, prompts of the same key that begin
    alike start from there, on all workers of the host that ran it. `public` is for all keys."""
    body = parse_body(WarmBody, await read_submission(request, gateway))
    if body.public and caller.role is not Role.ADMIN:
        raise Forbidden(
            "public: needs an admin key (MINI_VLLM_ADMIN_KEYS); without it, it is for this key's jobs",
            field="public",
        )
    if body.text is not None:
        check_text("text", body.text, gateway.settings)
    model = await gateway.models.find(body.model)
    job_request = body.to_request()
    text_field = None if body.text is None else "text"
    check_request(job_request, model, gateway.settings, text_field=text_field)
    job = await run_in_threadpool(
        gateway.broker.submit,
        job_request,
        request_id,
        owner=caller.owner,
        # A given one has no space in it, so this is not that of another route.
        idempotency_key=None if idempotency_key is None else f"{PATH} {idempotency_key}",
        model=model.name,
        warm="public" if body.public else "own",
    )
    return accept(job, response)
