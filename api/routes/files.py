"""``/v1/files``: what batches read and write."""

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from api.batches.examples import FILE, FILES, AfterFile, FileIdPath, shown_object
from api.deps import CallerDep, Gateway, GatewayDep
from api.files.receive import receive_file
from api.files.record import FileRecord
from api.keyring import Caller
from api.responses import KEYED_ROUTE, openai_refusals
from shared.errors import (
    BodyTimedOut,
    FileInUse,
    FileNotStored,
    Overloaded,
    ShuttingDown,
    StorageFull,
    StorageUnusable,
)
from shared.keys import file_readers_key

router = APIRouter()

MAX_PAGE = 10_000


@router.post(
    "/v1/files",
    summary="Upload a file",
    responses=openai_refusals(
        *KEYED_ROUTE,
        *(BodyTimedOut, StorageFull, StorageUnusable, ShuttingDown, Overloaded),
        others={200: shown_object(FILE)},
    ),
)
async def create_file(request: Request, gateway: GatewayDep, caller: CallerDep) -> dict[str, Any]:
    """`multipart/form-data` with `file`, `purpose` (`batch`), and `expires_after` if it is not to be
    kept for as long as files are. It is written to disk as it comes."""
    gateway.drain.check_admission()
    settings = gateway.settings
    record = await receive_file(
        gateway.files,
        request.headers.get("content-type", ""),
        request.stream(),
        owner=caller.owner,
        max_bytes=settings.max_file_bytes,
        ttl_s=settings.file_ttl_s,
    )
    return record.to_object()


@router.get(
    "/v1/files",
    summary="List files",
    responses=openai_refusals(
        *KEYED_ROUTE, FileNotStored, StorageUnusable, others={200: shown_object(FILES)}
    ),
)
async def list_files(
    gateway: GatewayDep,
    caller: CallerDep,
    purpose: Annotated[Literal["batch", "batch_output"] | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = MAX_PAGE,
    order: Annotated[Literal["asc", "desc"], Query()] = "desc",
    after: AfterFile = None,
) -> dict[str, Any]:
    """Those of the key that asks; an admin key sees all."""
    records = await run_in_threadpool(gateway.files.records, time.time())
    seen = [r for r in records if caller.may_see(r.owner) and purpose in (None, r.purpose)]
    if order == "asc":
        seen.reverse()
    if after is not None:
        places = [i for i, record in enumerate(seen) if record.id == after]
        if not places:
            raise FileNotStored("after: there is no such file in this list", field="after")
        seen = seen[places[0] + 1 :]
    page = seen[:limit]
    return {
        "object": "list",
        "data": [record.to_object() for record in page],
        "first_id": page[0].id if page else None,
        "last_id": page[-1].id if page else None,
        "has_more": len(seen) > limit,
    }


@router.get(
    "/v1/files/{file_id}",
    summary="What is known of a file",
    responses=openai_refusals(
        *KEYED_ROUTE, FileNotStored, StorageUnusable, others={200: shown_object(FILE)}
    ),
)
async def get_file(file_id: FileIdPath, gateway: GatewayDep, caller: CallerDep) -> dict[str, Any]:
    return (await find_file(gateway, file_id, caller)).to_object()


@router.get(
    "/v1/files/{file_id}/content",
    summary="The file itself",
    response_class=FileResponse,
    responses=openai_refusals(
        *KEYED_ROUTE,
        FileNotStored,
        StorageUnusable,
        others={
            200: {
                "description": "Its bytes",
                "content": {
                    "application/octet-stream": {
                        "schema": {"type": "string", "format": "binary"},
                        "example": "{}\n",
                    }
                },
            }
        },
    ),
)
async def get_file_content(
    file_id: FileIdPath, gateway: GatewayDep, caller: CallerDep
) -> FileResponse:
    record = await find_file(gateway, file_id, caller)
    path = gateway.files.path(record.id)
    if not await run_in_threadpool(path.is_file):
        raise FileNotStored
    return FileResponse(
        path, media_type="application/octet-stream", filename=record.filename, stat_result=None
    )


@router.delete(
    "/v1/files/{file_id}",
    summary="Delete a file",
    responses=openai_refusals(
        *KEYED_ROUTE,
        *(FileNotStored, FileInUse, StorageUnusable),
        others={200: shown_object({"id": FILE["id"], "object": "file", "deleted": True})},
    ),
)
async def delete_file(
    file_id: FileIdPath, gateway: GatewayDep, caller: CallerDep
) -> dict[str, Any]:
    record = await find_file(gateway, file_id, caller)
    if await gateway.reads.scard(file_readers_key(record.id)):
        raise FileInUse
    await run_in_threadpool(gateway.files.delete, record.id)
    return {"id": record.id, "object": "file", "deleted": True}


async def find_file(gateway: Gateway, file_id: str, caller: Caller) -> FileRecord:
    """Raises ``FileNotStored``, also for one of somebody else."""
    record = await run_in_threadpool(gateway.files.get, file_id, time.time())
    if not caller.may_see(record.owner):
        raise FileNotStored
    return record
