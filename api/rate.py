"""A share of requests per minute for each API key, counted in Redis, so over all gateways."""

import math

from fastapi import Request

from api.access import OPEN_PATHS
from api.deps import CallerDep, GatewayDep
from shared.errors import RateLimited
from shared.scripts import run_script_async


async def limit_rate(request: Request, gateway: GatewayDep, caller: CallerDep) -> None:
    most = gateway.settings.max_requests_per_minute
    if not most or not caller.owner or request.url.path in OPEN_PATHS:
        return
    wait_ms = await run_script_async(gateway.reads, "request", caller.owner, most)
    if wait_ms:
        raise RateLimited(
            f"This key has had {most} requests in the last minute (max_requests_per_minute).",
            retry_after_s=max(1, math.ceil(wait_ms / 1000)),
        )
