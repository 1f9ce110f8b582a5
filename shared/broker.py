"""Jobs in and out of RQ's queues: submit, cancel, position, depth. RQ's other home is worker/intake.py.

RQ's job carries the request as data in ``args[0]``; nothing in it is ever imported or called.
"""

import secrets
import time
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from redis import Redis
from rq.job import Job, Retry
from rq.queue import Queue
from rq.serializers import JSONSerializer

from shared.keys import JOB_FUNCTION, PRIORITIES, queue_name
from shared.protocol import MAX_SEED, GenerateRequest, JobArgs, Priority, job_args_to_wire
from shared.scripts import run_script, script_text

#: RQ must never end a job by itself: attempts are counted by us (``deaths`` of the job's hash).
RQ_RETRIES = 1_000_000


class GenerateJob(Job):
    """An RQ job without callbacks and webhooks: RQ's cleaners would import and call what a job's
    hash names. The setters swallow what is read from Redis."""

    success_callback = property(lambda _self: None)
    failure_callback = property(lambda _self: None)
    stopped_callback = property(lambda _self: None)

    def __init__(
        self, id: str | None = None, connection: Any = None, serializer: Any = None
    ) -> None:
        # RQ forgets the serializer in places (`rq info`, executions); pickle must never be an answer.
        super().__init__(id, connection, serializer or JSONSerializer)

    def restore(self, raw_data: Any) -> Any:
        result = super().restore(raw_data)
        self._success_callback_name = self._failure_callback_name = self._stopped_callback_name = (
            None
        )
        self.webhooks = []
        return result

    def send_webhooks(self, status: Any, *, exc_string: str | None = None) -> None:
        """Nothing is called that a job's hash names."""

    def perform(self) -> Any:
        raise NotImplementedError("a worker reads args[0]; it never calls the job's function")


def queue_for(client: Redis, name: str) -> Queue:
    return Queue(name, connection=client, job_class=GenerateJob, serializer=JSONSerializer)


@dataclass(frozen=True, slots=True)
class Submitted:
    job_id: str
    position: int  #: jobs in front of it, itself included: 1 is next
    seed: int


class Broker:
    """Blocking; the gateway calls it in threads. Redis errors pass through."""

    def __init__(self, client: Redis, model: str, result_ttl_s: int) -> None:
        self._client = client
        self._model = model
        self._result_ttl_s = result_ttl_s
        self._queues = {p: queue_for(client, queue_name(model, p)) for p in PRIORITIES}

    def submit(self, request: GenerateRequest, request_id: str | None = None) -> Submitted:
        """RQ's enqueue and our record of the job in one transaction."""
        job_id = uuid4().hex
        seed = request.seed if request.seed is not None else secrets.randbelow(MAX_SEED + 1)
        args = JobArgs(request=request, seed=seed, request_id=request_id)
        queue = self._queues[request.priority]
        job = GenerateJob.create(
            JOB_FUNCTION,
            args=(job_args_to_wire(args),),
            connection=self._client,
            id=job_id,
            origin=queue.name,
            timeout=-1,
            result_ttl=self._result_ttl_s,
            failure_ttl=self._result_ttl_s,
            retry=Retry(max=RQ_RETRIES, enqueue_at_front=True),
            description="generate",
            serializer=JSONSerializer,
        )
        timeout_ms = "" if request.timeout_s is None else int(request.timeout_s * 1000)
        with self._client.pipeline() as pipe:
            queue.enqueue_job(job, pipeline=pipe)
            pipe.eval(script_text("submit"), 0, job_id, self._model, queue.name, seed, timeout_ms)
            for name in self._ahead(request.priority):
                pipe.llen(f"rq:queue:{name}")
            lengths = pipe.execute()[-len(self._ahead(request.priority)) :]
        return Submitted(job_id, max(1, sum(lengths)), seed)

    def cancel(self, job_id: str) -> str:
        """``missing``, ``ended``, ``cancelled`` (it was queued) or ``cancelling`` (it is running)."""
        verdict: bytes = run_script(self._client, "cancel", job_id, self._result_ttl_s)
        return verdict.decode()

    def expire(self) -> list[str]:
        """Ends the queued jobs whose deadline has passed; says which."""
        return [i.decode() for i in run_script(self._client, "expire", self._result_ttl_s)]

    def position(self, job_id: str, queue: str) -> int | None:
        """Jobs in front of a queued job, itself included; ``None`` if it is in no queue."""
        index = self._client.lpos(f"rq:queue:{queue}", job_id)
        if not isinstance(index, int):
            return None
        ahead = self._ahead(Priority(queue.rsplit(":", 1)[1]))[:-1]
        return 1 + index + sum(int(self._client.llen(f"rq:queue:{name}")) for name in ahead)

    def depths(self) -> dict[str, int]:
        """Queued jobs by priority."""
        with self._client.pipeline(transaction=False) as pipe:
            for queue in self._queues.values():
                pipe.llen(queue.key)
            return dict(zip(self._queues, pipe.execute(), strict=True))

    def tidy_registries(self) -> None:
        """RQ's registries drop what has expired only when they are asked to; of the started jobs we
        drop it ourselves, since RQ would push them into their queues again."""
        for queue in self._queues.values():
            self._client.zremrangebyscore(queue.started_job_registry.key, 0, time.time())
            queue.finished_job_registry.cleanup()
            queue.failed_job_registry.cleanup()

    def _ahead(self, priority: Priority) -> list[str]:
        return [queue_name(self._model, p) for p in PRIORITIES[: PRIORITIES.index(priority) + 1]]
