"""``GET /live``: what the dashboard lives on, as server-sent events."""

from fastapi import APIRouter, Response

from api.deps import CallerDep, GatewayDep
from api.live.feed import LiveFeed
from api.live.schema import live_events
from api.responses import KEYED_ROUTE, refusals
from shared.errors import ShuttingDown, Unavailable

router = APIRouter()

_FEED = {
    "description": "Without end, unless the gateway stops or Redis cannot be read: come again then. "
    "`history` comes first (again only if Redis was emptied), `point` every 10 s, and `view` when it differs "
    "from the one before, at most once a second; a feed that is silent gets comments.",
    "content": live_events(),
}


@router.get(
    "/live",
    summary="Watch the service",
    status_code=200,
    response_model=None,
    response_class=Response,
    responses=refusals(*KEYED_ROUTE, ShuttingDown, Unavailable, others={200: _FEED}),
)
async def watch_service(gateway: GatewayDep, caller: CallerDep) -> Response:
    """The last hour in points of 10 s, then the service as it changes. Where keys are set, an admin key
    sees all; another one its own jobs, and neither workers nor totals."""
    return LiveFeed(gateway.board, caller, gateway.settings.sse_keepalive_s)
