"""RQ's job and queue as we use them: data in ``args[0]``, and nothing that is ever imported or called."""

from typing import Any

from redis import Redis
from rq.job import Job, JobStatus, Retry
from rq.queue import Queue
from rq.serializers import JSONSerializer
from rq.utils import now

from shared.keys import JOB_FUNCTION
from shared.protocol import JobArgs, job_args_to_wire

#: In place of the request of an ended job; RQ wants something there. The scripts have it too.
NO_REQUEST = b'["mini_vllm.generate", null, [], {}]'

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
        kept = {name: value for name, value in dict(raw_data).items() if name != b"webhooks"}
        result = super().restore(kept)
        self._success_callback_name = self._failure_callback_name = self._stopped_callback_name = (
            None
        )
        return result

    def send_webhooks(self, status: Any, *, exc_string: str | None = None) -> None:
        """Nothing is called that a job's hash names."""

    def perform(self) -> Any:
        raise NotImplementedError("a worker reads args[0]; it never calls the job's function")


def queue_for(client: Redis, name: str) -> Queue:
    return Queue(name, connection=client, job_class=GenerateJob, serializer=JSONSerializer)


def rq_fields(client: Redis, job_id: str, queue_name: str, args: JobArgs, ttl_s: int) -> list[Any]:
    """Names and values, in turn, of the hash in which RQ keeps a queued job."""
    job = GenerateJob.create(
        JOB_FUNCTION,
        args=(job_args_to_wire(args),),
        connection=client,
        id=job_id,
        origin=queue_name,
        timeout=-1,
        result_ttl=ttl_s,
        failure_ttl=ttl_s,
        retry=Retry(max=RQ_RETRIES, enqueue_at_front=True),
        description="generate",
        serializer=JSONSerializer,
        status=JobStatus.QUEUED,
    )
    job.enqueued_at = now()
    return [part for item in job.to_dict().items() for part in item]
