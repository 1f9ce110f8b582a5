"""``GET /jobs/<id>/stream``: the events of a job as server-sent events."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from api.deps import CallerDep, GatewayDep
from api.job_reads import find_record
from api.sse import EventStream, Position

router = APIRouter()


@router.get("/jobs/{job_id}/stream", response_class=Response)
async def stream_job(
    job_id: str,
    gateway: GatewayDep,
    caller: CallerDep,
    last_event_id: Annotated[str | None, Header()] = None,
    from_: Annotated[
        str | None, Query(alias="from", description="the number of tokens that were seen")
    ] = None,
) -> Response:
    """What an EventSource sends by itself counts before the address that it was opened with."""
    position = Position() if from_ is None else Position.parse(from_, "from")
    if last_event_id:
        position = Position.parse(last_event_id, "Last-Event-ID")
    await find_record(gateway.reads, job_id, caller)
    if position.has_end:
        return Response(status_code=204)
    return EventStream(gateway.hub, job_id, position, gateway.settings.sse_keepalive_s)
