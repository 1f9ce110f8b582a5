"""RQ's side of a worker: the only file here that knows RQ.

A subclass of RQ's base worker that keeps books of many jobs at once: it opens and closes executions,
beats for them, and answers RQ's stop commands. It never calls a job's function, callback or webhook:
a job is data in ``args[0]``.
"""

import logging
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import sleep
from typing import Any

from pydantic import ValidationError
from redis import Redis
from redis.exceptions import OutOfMemoryError, RedisError, ResponseError
from rq.command import handle_command, parse_payload
from rq.executions import Execution
from rq.job import JobStatus as RqJobStatus
from rq.queue import Queue
from rq.results import Result
from rq.serializers import JSONSerializer
from rq.utils import now
from rq.worker import BaseWorker, WorkerStatus

from shared.errors import BadRequest, InternalError
from shared.keys import PRIORITIES, queue_name
from shared.logs import about
from shared.protocol import JobArgs, JobStatus
from shared.rq_job import NO_REQUEST, GenerateJob, queue_for
from worker.link import is_passing

log = logging.getLogger(__name__)

_LISTEN_PAUSE_S = 1.0
#: Of a request once it is decompressed: the longest prompt there can be, all of it escaped.
_MAX_REQUEST_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True)
class Held:
    """RQ's objects of a job that runs here."""

    job: GenerateJob
    queue: Queue
    execution: Execution


class Intake(BaseWorker):
    job_class = GenerateJob
    log_result_lifespan = False

    def __init__(
        self,
        client: Redis,
        *,
        model: str,
        incarnation: str,
        heartbeat_ttl_s: float,
        result_ttl_s: int,
        on_stop: Callable[[str], None],
        on_shutdown: Callable[[], None],
    ) -> None:
        queues = [queue_for(client, queue_name(model, priority)) for priority in PRIORITIES]
        self._beat_ttl_s = max(1, round(heartbeat_ttl_s))
        super().__init__(
            queues,
            name=incarnation,
            connection=client,
            job_class=GenerateJob,
            serializer=JSONSerializer,
            default_result_ttl=result_ttl_s,
            worker_ttl=self._beat_ttl_s,
            log_job_description=False,
        )
        self._held: dict[str, Held] = {}
        self._unsettled: deque[tuple[Held, JobStatus, str]] = deque()
        self._on_stop = on_stop
        self._on_shutdown = on_shutdown
        logging.getLogger("rq.worker").setLevel(logging.ERROR)

    def open(self) -> None:
        """Announces this worker to RQ (``rq info``) and listens for its commands."""
        try:
            self.register_birth()
            self.set_state(WorkerStatus.IDLE)
        except OutOfMemoryError as error:
            log.warning("RQ is not told of this worker: %s", error)
        self.subscribe()

    def close(self) -> None:
        try:
            self.teardown()
        except RedisError as error:
            log.warning("could not sign off from RQ: %s", error)

    def take(self, job_id: str) -> JobArgs:
        """Marks a popped job as started in RQ and reads its arguments. Redis errors pass through,
        and the call may be repeated; raises ``ServiceError`` for a job that cannot be read."""
        try:
            raw = self.connection.hgetall(GenerateJob.key_for(job_id))
        except ResponseError as error:
            if is_passing(error):
                raise
            raise InternalError(f"The request of this job cannot be read: {error}") from error
        if not raw or b"data" not in raw:
            raise InternalError("The request of this job is gone from Redis.")
        try:
            _check_size(raw[b"data"])
            job = GenerateJob(job_id, self.connection, JSONSerializer)
            job.restore(raw)
            args = JobArgs.model_validate(job.args[0])
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise BadRequest(f"{where}: {first['msg']}", field=where) from None
        except Exception as error:
            raise InternalError(f"The request of this job cannot be read: {error}") from error
        try:
            self._open_execution(job_id, job)
        except ResponseError as error:
            # RQ's books are full or damaged; the job does not need RQ's books.
            self._held.pop(job_id, None)
            words = "job %s: RQ is not told that it runs: %s"
            log.warning(words, job_id, error, extra=about(job=job_id))
        return args

    def _open_execution(self, job_id: str, job: GenerateJob) -> None:
        queue = next((q for q in self.queues if q.name == job.origin), self.queues[1])
        execution = self.prepare_execution(job)
        self._held[job_id] = Held(job, queue, execution)
        self.prepare_job_execution(job)

    def settle(self, job_id: str, status: JobStatus, reason: str = "") -> None:
        """Brings RQ in line with how the job ended; repeated by ``settle_rest`` if Redis is away."""
        held = self._held.pop(job_id, None)
        if held:
            self._unsettled.append((held, status, reason))
            self.settle_rest()

    def release(self, job_id: str) -> None:
        """The job runs elsewhere now, or waits again: only our execution of it goes."""
        held = self._held.pop(job_id, None)
        if held:
            try:
                with self.connection.pipeline() as pipe:
                    self.cleanup_execution(held.job, pipe, held.execution)
                    pipe.execute()
            except RedisError as error:  # it lapses by itself
                words = "job %s: its execution stays in RQ for now: %s"
                log.warning(words, job_id, error, extra=about(job=job_id))

    def settle_rest(self) -> None:
        while self._unsettled:
            held, status, reason = self._unsettled[0]
            told = about(job=held.job.id)
            try:
                self._settle(held, status, reason)
                if not self._held:
                    self.set_state(WorkerStatus.IDLE)
            except RedisError as error:
                if is_passing(error):
                    log.warning("job %s: RQ is told later: %s", held.job.id, error, extra=told)
                    return
                log.exception("job %s: RQ's books of it are broken", held.job.id, extra=told)
            except Exception:
                log.exception("job %s: RQ's books of it are broken", held.job.id, extra=told)
            self._unsettled.popleft()

    def beat(self) -> None:
        """RQ's heartbeats of the worker and of each execution; called from the heart's thread."""
        with self.connection.pipeline(transaction=False) as pipe:
            self.heartbeat(self._beat_ttl_s, pipeline=pipe)
            for held in list(self._held.values()):
                registry = held.job.started_job_registry
                held.execution.heartbeat(registry, self._beat_ttl_s, pipeline=pipe)
            is_new = pipe.execute()[0] == 1
        if is_new:  # the hash had lapsed, in an outage say
            self.connection.hset(self.key, mapping=self.serialize())
            self.connection.expire(self.key, self._beat_ttl_s)

    def _settle(self, held: Held, status: JobStatus, reason: str) -> None:
        job, queue, execution = held.job, held.queue, held.execution
        job.data = NO_REQUEST  # RQ saves it again
        job.ended_at = now()
        if status is JobStatus.COMPLETED:
            job._result = None
            job._status = RqJobStatus.FINISHED
            self.handle_job_success(job, queue, queue.started_job_registry, execution)
            # RQ's result, of None, takes 4 kB; ours is the job's stream.
            self.connection.delete(Result.get_key(job.id))
            return
        if status is JobStatus.CANCELLED:
            self._stopped_job_id = job.id
        # RQ would try a failed job again: attempts are ours, and this one is the last.
        job.retries_left = 0
        self.handle_job_failure(job, queue, exc_string=reason, execution=execution)

    # What RQ calls.

    def get_heartbeat_ttl(self, job: Any, working_time: float = 0.0) -> int:  # noqa: ARG002
        return self._beat_ttl_s

    def execute_job(self, job: Any, queue: Any) -> None:
        raise NotImplementedError("jobs are run by the engine, many at once")

    def procline(self, message: str) -> None:
        """RQ would write a job's name into the process title."""

    def _pubsub_exception_handler(self, exc: Exception, pubsub: Any, pubsub_thread: Any) -> None:  # noqa: ARG002
        """In RQ's listener thread: it listens again when Redis is back, whatever the error was."""
        log.debug("RQ's commands are not heard: %s", exc)
        sleep(_LISTEN_PAUSE_S)

    def handle_payload(self, message: Any) -> None:
        """A command, in RQ's listener thread: ``rq`` may stop a job or shut the worker down."""
        payload = parse_payload(message)
        match payload.get("command"):
            case "stop-job":
                self._on_stop(str(payload.get("job_id")))
            case "shutdown":
                self._on_shutdown()
            case _:
                handle_command(self, payload)

    def request_stop_execution(self, execution_id: str) -> None:
        for job_id, held in list(self._held.items()):
            if held.execution.id == execution_id:
                self._on_stop(job_id)


def _check_size(data: Any) -> None:
    """RQ would decompress whatever comes of it. Raises ``InternalError``."""
    unpacker = zlib.decompressobj()
    try:
        unpacker.decompress(data, _MAX_REQUEST_BYTES)
    except zlib.error:  # it is not compressed, which RQ takes too
        return
    if unpacker.unconsumed_tail:
        raise InternalError(f"The request of this job is larger than {_MAX_REQUEST_BYTES} bytes.")
