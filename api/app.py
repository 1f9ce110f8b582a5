"""Puts a gateway together: routes, middleware, and what runs from start to stop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from uuid import uuid4

from fastapi import Depends, FastAPI

from api.access import Access
from api.asking import Asking
from api.batches.holder import BatchHolder
from api.batches.tools import BatchTools
from api.body_budget import BodyBudget
from api.complaints import Complaints
from api.completions.form import ENDPOINTS
from api.deps import Gateway
from api.drain import Drain
from api.errors import install_error_handlers
from api.files.store import FileStore
from api.files.tidying import keep_tidy
from api.hub import BLOCK_MS, Hub
from api.job_reads import read_job
from api.job_view import JobView
from api.keyring import ANYBODY, Keyring
from api.limits import BodyLimit, BodyLimits
from api.live.board import Board
from api.live.history import HistoryWriter
from api.live.reports import Reports
from api.live.sight import SightReader
from api.model_reads import ModelReader
from api.openapi import describe_in_openapi
from api.page_files import FOLDER, read_page_files
from api.query import refuse_unknown_parameters
from api.rate import limit_rate
from api.request_id import RequestId
from api.routes import (
    batches,
    cache,
    chat_completions,
    completions,
    dashboard,
    files,
    generate,
    jobs,
    live,
    log_level,
    metrics,
    models,
    status,
    stream,
    tokens,
)
from api.token_bodies import TOKEN_PATHS
from api.upkeep import Upkeep
from api.vitals import Vitals
from api.webhooks import WebhookSender
from shared.admission import Limits
from shared.broker import Broker
from shared.connection import COMMAND_TIMEOUT_S, READ_TIMEOUT_S, connect, connect_async
from shared.logs.level import LevelFollower
from shared.models import model_name
from shared.recovery import Sweeper
from shared.settings import Settings

#: Reads that may be under way at once; redis-py's 100 would fail a burst of polling clients.
_MAX_READ_CONNECTIONS = 512
#: Of an upload beside its file.
_FORM_BYTES = 65_536
#: Longer than what a task does at its end.
_CANCEL_AGAIN_S = 5.0


def create_app(settings: Settings) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running_gateway(settings) as gateway:
            app.state.gateway = gateway
            yield

    app = FastAPI(
        title="Mini vLLM",
        version=_version(),
        lifespan=lifespan,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    checks = [Depends(limit_rate), Depends(refuse_unknown_parameters)]
    openai = (chat_completions, completions, models, files, batches)
    for routes in (
        generate,
        jobs,
        stream,
        *openai,
        cache,
        metrics,
        log_level,
        status,
        tokens,
        live,
        dashboard,
    ):
        app.include_router(routes.router, dependencies=checks)
    install_error_handlers(app)
    json_paths = ("/generate", cache.PATH, *ENDPOINTS, *TOKEN_PATHS)
    limits = BodyLimits(
        {("POST", path): settings.max_body_bytes for path in json_paths}
        | {("POST", "/v1/files"): settings.max_file_bytes + _FORM_BYTES},
        timeout_s=settings.body_timeout_s,
        deadline_s=settings.body_deadline_s,
        streamed_s={("POST", "/v1/files"): settings.file_deadline_s},
    )
    app.state.body_budget = BodyBudget(settings.max_inflight_body_bytes)
    app.state.page_files = read_page_files(FOLDER)
    app.add_middleware(BodyLimit, limits=limits, budget=app.state.body_budget)
    keyring = app.state.keyring = Keyring.from_settings(settings)
    describe_in_openapi(app, settings, keyring)
    app.add_middleware(Access, keyring=keyring)
    app.add_middleware(RequestId)  # the last one added is the outermost
    return app


@asynccontextmanager
async def running_gateway(settings: Settings) -> AsyncIterator[Gateway]:
    """Does not wait for Redis: a gateway without it is alive, and says that it is not ready."""
    async with AsyncExitStack() as stack:
        client = connect(settings.redis_url)
        stack.callback(client.close)
        reads = connect_async(
            settings.redis_url, timeout_s=READ_TIMEOUT_S, max_connections=_MAX_READ_CONNECTIONS
        )
        stack.push_async_callback(reads.aclose)
        streams = connect_async(
            settings.redis_url, timeout_s=BLOCK_MS / 1000 + COMMAND_TIMEOUT_S, max_connections=1
        )
        stack.push_async_callback(streams.aclose)
        waits = connect_async(
            settings.redis_url, timeout_s=BLOCK_MS / 1000 + COMMAND_TIMEOUT_S, max_connections=1
        )
        stack.push_async_callback(waits.aclose)
        model = model_name(settings.model)
        broker = Broker(client, model, settings.result_ttl_s, Limits.from_settings(settings))
        complaints = Complaints(settings.redis_url)
        hub = Hub(streams, reads, uuid4().hex, complaints)
        sweeper = Sweeper.from_settings(settings)
        upkeep = Upkeep(
            client,
            broker,
            sweeper,
            complaints,
            result_ttl_s=settings.result_ttl_s,
            follow_level=LevelFollower(settings.log_level).follow,
        )
        drain = Drain(settings.stream_grace_s)
        asking = Asking(waits, reads, complaints)
        models = ModelReader(reads, model, settings.model, settings.worker_grace_s)
        files = FileStore(settings.files_folder, settings.file_store_max_bytes)
        reports = Reports.from_settings(settings)
        board = Board(reads, SightReader(reads, model, models, reports), complaints)
        writer = HistoryWriter(reads, model, complaints)
        holder = BatchHolder(BatchTools(settings, reads, broker, models, files, drain))
        gateway = Gateway(
            settings,
            model,
            reads,
            broker,
            hub,
            upkeep,
            Vitals(),
            drain,
            complaints,
            models,
            asking,
            files,
            holder,
            board,
            reports,
        )

        def read_any_job(job_id: str) -> Awaitable[JobView]:
            return read_job(gateway, job_id, ANYBODY)

        sender = WebhookSender(reads, settings, read_any_job, complaints)
        tidying = keep_tidy(files, reads)
        jobs_runs = (hub.run(), upkeep.run(), holder.run(), tidying, asking.run(), sender.run())
        runs = (*jobs_runs, board.run(), writer.run())
        stack.push_async_callback(_end, [asyncio.create_task(run) for run in runs])
        yield gateway


async def _end(tasks: list["asyncio.Task[None]"]) -> None:
    """A cancellation may be lost: ``asyncio.wait_for`` of Python 3.11 swallows one that meets a result."""
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=_CANCEL_AGAIN_S)


def _version() -> str:
    try:
        return version("mini-vllm")
    except PackageNotFoundError:
        return "0+source"
