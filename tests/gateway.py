"""A gateway on a real port, and a worker that a test plays itself."""

import socket
import threading
from typing import Any

import httpx
import redis
import uvicorn

from shared.connection import connect
from shared.models import model_name
from shared.protocol import (
    EndEvent,
    Event,
    FinishReason,
    JobStatus,
    StartEvent,
    Timings,
    TokenEvent,
    Usage,
    Weights,
    WorkerReport,
    WorkerState,
    to_wire,
)
from shared.scripts import run_script, run_scripts
from shared.settings import load_settings
from shared.stream import Entry, append_call, verdicts
from tests.links import serve
from tests.servers import wait_for


class RunningGateway:
    """The gateway in a thread, on a free port of the loopback."""

    def __init__(self, redis_url: str, **settings: object) -> None:
        self.settings = load_settings(redis_url=redis_url, host="127.0.0.1", **settings)
        from api.app import create_app  # here: the other tests of this folder need no gateway
        from api.http_protocol import bounded_http

        self.app = create_app(self.settings)
        config = uvicorn.Config(
            self.app,
            http=bounded_http(self.settings),
            log_config=None,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True
        )

    @property
    def num_followers(self) -> int:
        return int(self.app.state.gateway.hub.num_followers)

    @property
    def held_body_bytes(self) -> int:
        return int(self.app.state.body_budget.held_bytes)

    def start(self) -> "RunningGateway":
        """As if a worker of its model had been there a moment ago: jobs are taken."""
        client = connect(self.settings.redis_url)
        serve(client, model_name(self.settings.model))
        client.close()
        self._thread.start()
        wait_for(lambda: self._server.started, "the gateway starts")
        return self

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=20)

    def do_upkeep(self) -> None:
        """What a gateway does each minute, now."""
        self.app.state.gateway.upkeep.round(float("inf"))

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=20)
        assert not self._thread.is_alive(), "the gateway did not stop"
        self._listener.close()


class PlayedWorker:
    """A worker without an engine: a test takes jobs with it and says what they give."""

    def __init__(
        self,
        client: redis.Redis,
        name: str,
        model: str,
        *,
        beat_ms: int = 60_000,
        **facts: Any,
    ) -> None:
        """``facts`` are what it reports of its model."""
        self.client = client
        self.name = name
        self.model = model
        self.weights: Weights | None = facts.get("weights")
        self.cached_tokens = 0  #: of each prompt, which has three
        report = WorkerReport(
            name=name,
            incarnation=name,
            pid=1,
            host="h",
            model=model,
            state=WorkerState.READY,
            slots=8,
            memory_mb=100,
            cpu_percent=50,
            **facts,
        )
        run_script(client, "register", name, beat_ms, to_wire(report), model)

    def take(self) -> str:
        """The id of the next job, which is this worker's then."""
        jobs = wait_for(
            lambda: run_script(self.client, "pop", self.name, self.model, 0, 8, 1, 16, 3600, 0),
            "a job waits",
        )
        return str(jobs[0][0].decode())

    def emit(self, job_id: str, *events: Event | None, attempt: int = 1) -> dict[str, str]:
        """The verdicts."""
        entries = [Entry(job_id, attempt, event, busy_ms=1000) for event in events]
        return verdicts(run_scripts(self.client, [append_call(self.name, 3600, entries)])[0])

    def start(self, job_id: str, prompt_tokens: int = 3) -> None:
        self.emit(job_id, StartEvent(prompt_tokens=prompt_tokens))

    def token(self, job_id: str, index: int, text: str, count: int = 1, attempt: int = 1) -> None:
        event = TokenEvent(index=index, tokens=tuple(range(count)), text=text, attempt=attempt)
        self.emit(job_id, event, attempt=attempt)

    def end(
        self,
        job_id: str,
        num_tokens: int,
        status: JobStatus = JobStatus.COMPLETED,
        reason: FinishReason = FinishReason.STOP,
    ) -> None:
        event = EndEvent(
            status=status,
            finish_reason=reason,
            usage=Usage(
                prompt_tokens=3,
                cached_tokens=self.cached_tokens,
                completion_tokens=num_tokens,
            ),
            timings=Timings(queued_s=0.1, total_s=1.5),
            seed=1,
            worker=self.name,
            attempts=1,
            weights=self.weights,
        )
        self.emit(job_id, event)

    def play(self, *texts: str) -> str:
        """Takes a job and runs it to its end; its id."""
        job_id = self.take()
        self.start(job_id)
        for index, text in enumerate(texts):
            self.token(job_id, index, text)
        self.end(job_id, len(texts))
        return job_id
