"""What a running gateway holds, and how a route gets at it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request
from redis.asyncio import Redis as AsyncRedis

from api.asking import Asking
from api.batches.holder import BatchHolder
from api.complaints import Complaints
from api.drain import Drain
from api.files.store import FileStore
from api.hub import Hub
from api.keyring import Caller
from api.live.reports import Reports
from api.model_reads import ModelReader
from api.upkeep import Upkeep
from api.vitals import Vitals
from shared.broker import Broker
from shared.settings import Settings

if TYPE_CHECKING:  # it reads jobs, which a gateway is asked for
    from api.live.board import Board


@dataclass(frozen=True, slots=True)
class Gateway:
    settings: Settings
    model: str  #: as in the names of the queues
    reads: AsyncRedis
    broker: Broker  #: blocking: call it in a thread
    hub: Hub
    upkeep: Upkeep
    vitals: Vitals
    drain: Drain
    complaints: Complaints
    models: ModelReader
    asking: Asking
    files: FileStore
    batches: BatchHolder
    board: "Board"
    reports: Reports


def _gateway(request: Request) -> Gateway:
    gateway: Gateway = request.app.state.gateway
    return gateway


def _request_id(request: Request) -> str:
    return str(request.state.request_id)


def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


GatewayDep = Annotated[Gateway, Depends(_gateway)]
RequestIdDep = Annotated[str, Depends(_request_id)]
CallerDep = Annotated[Caller, Depends(_caller)]

#: A reply of Redis, which has no types of its own.
Reply = Any
