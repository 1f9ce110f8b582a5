"""What a gateway gives to the batches that it runs."""

from dataclasses import dataclass

from redis.asyncio import Redis

from api.drain import Drain
from api.files.store import FileStore
from api.model_reads import ModelReader
from shared.broker import Broker
from shared.settings import Settings


@dataclass(frozen=True, slots=True)
class BatchTools:
    settings: Settings
    reads: Redis
    broker: Broker
    models: ModelReader
    files: FileStore
    drain: Drain
