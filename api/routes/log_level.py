"""``/admin/log-level``: how much gateways and workers log, while they run."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from api import examples
from api.deps import GatewayDep, Reply
from api.responses import KEYED_ROUTE, refusals
from api.validation import parse_body
from shared.errors import BadRequest, BodyTimedOut, RedisFull
from shared.keys import LOG_LEVEL
from shared.logs import Level
from shared.logs.level import read_level

router = APIRouter()

PATH = "/admin/log-level"


class LevelBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    level: Level


class LogLevel(BaseModel):
    level: Level | None = Field(
        description="of all gateways and workers; null: what each has in MINI_VLLM_LOG_LEVEL"
    )


_SHOWN: dict[int | str, dict[str, Any]] = {200: examples.shown(examples.LOG_LEVEL)}
_BODY = {
    "required": True,
    "content": {
        "application/json": {
            "schema": LevelBody.model_json_schema(),
            "examples": {"more": {"value": examples.LOG_LEVEL}},
        }
    },
}


@router.get(
    PATH,
    summary="How much all processes log",
    responses=refusals(*KEYED_ROUTE, others=_SHOWN),
)
async def get_log_level(gateway: GatewayDep) -> LogLevel:
    """Needs an admin key, where keys are set."""
    raw: Reply = await gateway.reads.get(LOG_LEVEL)
    return LogLevel(level=read_level(raw))


@router.put(
    PATH,
    summary="Have all processes log more, or less",
    responses=refusals(*KEYED_ROUTE, BadRequest, BodyTimedOut, RedisFull, others=_SHOWN),
    openapi_extra={"requestBody": _BODY},
)
async def set_log_level(request: Request, gateway: GatewayDep) -> LogLevel:
    """Each gateway and worker takes it over within some seconds, one that starts later too, and says so
    in its log. Prompts are logged at no level."""
    body = parse_body(LevelBody, await request.body())
    await gateway.reads.set(LOG_LEVEL, body.level)
    return LogLevel(level=body.level)


@router.delete(
    PATH,
    summary="Have each process log as much as its settings say",
    responses=refusals(*KEYED_ROUTE, others=_SHOWN),
)
async def reset_log_level(gateway: GatewayDep) -> LogLevel:
    await gateway.reads.delete(LOG_LEVEL)
    return LogLevel(level=None)
