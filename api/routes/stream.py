"""``GET /jobs/<id>/stream``: the events of a job as server-sent events."""

from fastapi import APIRouter, Response

from api.deps import CallerDep, GatewayDep
from api.event_schema import event_stream
from api.job_reads import find_record
from api.parameters import From, JobId, LastEventId
from api.responses import KEYED_ROUTE, refusals
from api.sse import EventStream, Position
from shared.errors import JobNotFound

router = APIRouter()

_STREAM = {
    "description": "Events `start`, `token` and `end`. The id of an event is the number of tokens "
    "so far; a stream that is silent gets comments.",
    "content": event_stream(),
}
_OVER = {"description": "The client has seen the end: an EventSource does not come again."}


@router.get(
    "/jobs/{job_id}/stream",
    summary="Follow a job to its end",
    status_code=200,
    response_model=None,
    response_class=Response,
    responses=refusals(*KEYED_ROUTE, JobNotFound, others={200: _STREAM, 204: _OVER}),
)
async def stream_job(
    job_id: JobId,
    gateway: GatewayDep,
    caller: CallerDep,
    last_event_id: LastEventId = None,
    from_: From = None,
) -> Response:
    """What an EventSource sends by itself counts before the address that it was opened with."""
    position = Position() if from_ is None else Position.parse(from_, "from")
    if last_event_id:
        position = Position.parse(last_event_id, "Last-Event-ID")
    await find_record(gateway.reads, job_id, caller)
    if position.has_end:
        return Response(status_code=204)
    return EventStream(gateway.hub, job_id, position, gateway.settings.sse_keepalive_s)
