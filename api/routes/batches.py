"""``/v1/batches``: many requests in one file, done when nothing else is to be done."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from api.batches.body import parse_batch_body
from api.batches.examples import BATCH, BATCHES, AfterBatch, BatchIdPath, shown_object
from api.batches.store import cancel_batch as cancel
from api.batches.store import create_batch as create
from api.batches.store import find_batch
from api.batches.store import list_batches as read_page
from api.bounds import webhook_problems
from api.deps import CallerDep, GatewayDep, RequestIdDep
from api.parameters import IdempotencyKey
from api.responses import KEYED_ROUTE, openai_refusals
from api.routes.files import find_file
from api.routes.generate import check_idempotency_key
from api.validation import InvalidRequest
from shared.errors import (
    BadRequest,
    BatchEnded,
    BatchNotFound,
    BodyTimedOut,
    FileNotStored,
    IdempotencyConflict,
    Overloaded,
    RedisFull,
    ShuttingDown,
    StorageUnusable,
    TooManyBatches,
)

router = APIRouter()

_BATCH = shown_object(BATCH)


@router.post(
    "/v1/batches",
    summary="Create a batch",
    responses=openai_refusals(
        *KEYED_ROUTE,
        *(BodyTimedOut, FileNotStored, IdempotencyConflict, TooManyBatches),
        *(RedisFull, StorageUnusable, ShuttingDown, Overloaded),
        others={200: _BATCH},
    ),
)
async def create_batch(
    request: Request,
    gateway: GatewayDep,
    request_id: RequestIdDep,
    caller: CallerDep,
    idempotency_key: IdempotencyKey = None,
) -> dict[str, Any]:
    """Its lines run at low priority, whenever nobody else waits. `webhook_url` is told of its end."""
    if idempotency_key is not None:
        check_idempotency_key(*request.headers.getlist("Idempotency-Key"))
    raw = await request.body()
    gateway.drain.check_admission()
    asked = await run_in_threadpool(parse_batch_body, raw, request_id)
    if problems := webhook_problems(asked.webhook_url, gateway.settings):
        raise InvalidRequest(problems)
    record = await find_file(gateway, asked.input_file_id, caller)
    if record.purpose != "batch":
        raise BadRequest("input_file_id: must be a file of purpose 'batch'", field="input_file_id")
    batch = await create(gateway.batches.tools, asked, caller, idempotency_key)
    gateway.batches.wake()
    return batch.to_object()


@router.get(
    "/v1/batches",
    summary="List batches, newest first",
    responses=openai_refusals(*KEYED_ROUTE, BatchNotFound, others={200: shown_object(BATCHES)}),
)
async def list_batches(
    gateway: GatewayDep,
    caller: CallerDep,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    after: AfterBatch = None,
) -> dict[str, Any]:
    """Those of the key that asks; an admin key sees all."""
    batches, has_more = await read_page(gateway.reads, caller, limit, after)
    return {
        "object": "list",
        "data": [batch.to_object() for batch in batches],
        "first_id": batches[0].id if batches else None,
        "last_id": batches[-1].id if batches else None,
        "has_more": has_more,
    }


@router.get(
    "/v1/batches/{batch_id}",
    summary="How far a batch is",
    responses=openai_refusals(*KEYED_ROUTE, BatchNotFound, others={200: _BATCH}),
)
async def get_batch(
    batch_id: BatchIdPath, gateway: GatewayDep, caller: CallerDep
) -> dict[str, Any]:
    return (await find_batch(gateway.reads, batch_id, caller)).to_object()


@router.post(
    "/v1/batches/{batch_id}/cancel",
    summary="Cancel a batch",
    responses=openai_refusals(*KEYED_ROUTE, BatchNotFound, BatchEnded, others={200: _BATCH}),
)
async def cancel_batch(
    batch_id: BatchIdPath, gateway: GatewayDep, caller: CallerDep
) -> dict[str, Any]:
    """It is `cancelling` until what runs has ended; what was done is kept in its files."""
    batch = await cancel(gateway.reads, batch_id, caller)
    gateway.batches.wake()
    return batch.to_object()
