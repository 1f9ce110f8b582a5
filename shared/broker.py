"""Jobs in and out of RQ's queues: submit, cancel, position, depth. RQ's other home is worker/intake.py."""

import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

from redis import Redis

from shared.admission import Limits, refusal_of
from shared.keys import OPEN, PRIORITIES, SECRET, SERVED, SUSPECT, queue_key, queue_name
from shared.protocol import MAX_SEED, GenerateRequest, JobArgs, JobStatus, Priority
from shared.rq_job import queue_for, rq_fields
from shared.scripts import run_script

#: Overdue jobs that one run of the script looks at, and runs in a row: a second each for the rest.
_EXPIRE_BATCH = 100
_MAX_EXPIRE_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class Submitted:
    """``position``: jobs in front of it, itself included: 1 is next; ``None`` if it waits no longer.
    ``is_new`` is false where the idempotency key has named the job before: then ``created_ms`` and
    ``note`` are of that time."""

    job_id: str
    status: JobStatus
    position: int | None
    seed: int
    is_new: bool
    created_ms: int
    note: str


class Broker:
    """Blocking; the gateway calls it in threads. Redis errors pass through."""

    def __init__(self, client: Redis, model: str, result_ttl_s: int, limits: Limits) -> None:
        """``model`` is that of a request that names none."""
        self._client = client
        self._model = model
        self._result_ttl_s = result_ttl_s
        self._limits = limits

    def submit(
        self,
        request: GenerateRequest,
        request_id: str | None = None,
        *,
        owner: str = "",
        idempotency_key: str | None = None,
        model: str | None = None,
        note: str = "",
        identity: str | None = None,
        warm: Literal["own", "public"] | None = None,
    ) -> Submitted:
        """RQ's enqueue and our record of the job in one move, within the limits. ``model`` is the name
        of its queues, ``note`` what the record keeps for the gateways, ``identity`` what of the note must
        be the same under one key (all of it, if ``None``), ``warm`` see ``JobArgs``. Raises
        ``TooManyRequests``, ``Unavailable`` or ``IdempotencyConflict``."""
        job_id, digest = uuid4().hex, ""
        if idempotency_key is not None:
            job_id, digest = (
                self.named_id(owner, idempotency_key),
                _digest(request, (note if identity is None else identity) + (warm or "")),
            )
        seed = request.seed if request.seed is not None else secrets.randbelow(MAX_SEED + 1)
        args = JobArgs(request=request, seed=seed, request_id=request_id)
        if warm is not None:  # a worker of an older version can read all other jobs
            args = JobArgs(request=request, seed=seed, request_id=request_id, warm=warm)
        model = model or self._model
        queue = queue_name(model, request.priority)
        limits = self._limits
        reply = run_script(
            self._client,
            "submit",
            job_id,
            model,
            queue,
            seed,
            "" if request.timeout_s is None else int(request.timeout_s * 1000),
            owner,
            request.num_prompt_chars,
            digest,
            limits.max_queued_jobs,
            limits.max_queued_chars,
            limits.max_owner_jobs,
            limits.worker_grace_ms,
            note,
            request.webhook_url or "",
            *rq_fields(self._client, job_id, queue, args, self._result_ttl_s),
        )
        if reply[0] == b"accepted":
            return Submitted(
                job_id, JobStatus.QUEUED, int(reply[1]), seed, True, int(reply[2]), note
            )
        if reply[0] == b"same":
            status, old_queue, old_seed = JobStatus(reply[1].decode()), reply[2].decode(), reply[3]
            is_queued = status is JobStatus.QUEUED
            position = self.position(job_id, old_queue) if is_queued else None
            made_ms, old_note = int(reply[4]), reply[5].decode(errors="replace")
            return Submitted(job_id, status, position, int(old_seed), False, made_ms, old_note)
        raise refusal_of(reply, limits, model)

    def cancel(self, job_id: str) -> str:
        """``missing``, ``ended``, ``cancelled`` (it was queued) or ``cancelling`` (it is running)."""
        verdict: bytes = run_script(self._client, "cancel", job_id, self._result_ttl_s)
        return verdict.decode()

    def expire(self) -> list[str]:
        """Ends the queued jobs whose deadline has passed; says which."""
        ended: list[str] = []
        for _ in range(_MAX_EXPIRE_ROUNDS):
            looked_at, ids = run_script(self._client, "expire", self._result_ttl_s)
            ended += [job_id.decode() for job_id in ids]
            if looked_at < _EXPIRE_BATCH:
                break
        return ended

    def position(self, job_id: str, queue: str) -> int | None:
        """Jobs in front of a queued job, itself included; ``None`` if it is in no queue."""
        model, priority = queue.rsplit(":", 1)
        index = self._client.lpos(queue_key(queue), job_id)
        if not isinstance(index, int):
            index = self._client.lpos(queue_key(queue_name(model, SUSPECT)), job_id)
            return 1 + index if isinstance(index, int) else None
        ahead = PRIORITIES[: PRIORITIES.index(Priority(priority))]
        lengths = [self._client.llen(queue_key(queue_name(model, p))) for p in ahead]
        return 1 + index + sum(int(length) for length in lengths)

    def mend(self) -> list[str]:
        """Looks after jobs that are in no queue and on no worker; says which were not well."""
        open_ids: Any = self._client.smembers(OPEN)
        names = [queue_name(m, p) for m in self._models() for p in (*PRIORITIES, SUSPECT)]
        with self._client.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.lrange(queue_key(name), 0, -1)
            waiting = {job_id for reply in pipe.execute() for job_id in reply}
        return [
            job_id.decode(errors="replace")
            for job_id in open_ids - waiting
            if run_script(self._client, "mend", job_id, self._result_ttl_s)
        ]

    def tidy_registries(self) -> None:
        """RQ's registries drop what has expired only when they are asked to; of the started jobs we
        drop it ourselves, since RQ would push them into their queues again."""
        names = [queue_name(model, p) for model in self._models() for p in PRIORITIES]
        for queue in [queue_for(self._client, name) for name in names]:
            self._client.zremrangebyscore(queue.started_job_registry.key, 0, time.time())
            queue.finished_job_registry.cleanup()
            queue.failed_job_registry.cleanup()

    def _models(self) -> set[str]:
        """All that a worker has served, and the gateway's own."""
        served: Any = self._client.hkeys(SERVED)
        return {self._model, *(model.decode(errors="replace") for model in served)}

    def named_id(self, owner: str, idempotency_key: str) -> str:
        """The same for the same owner and key, and not to be guessed by anybody else."""
        fresh = secrets.token_hex(32).encode()
        secret: Any = self._client.set(SECRET, fresh, nx=True, get=True) or fresh
        words = f"{owner}\0{idempotency_key}".encode()
        return hmac.new(secret, words, hashlib.sha256).hexdigest()[:32]


def _digest(request: GenerateRequest, identity: str) -> str:
    """The same for the same fields and values, in whatever order they were written."""
    fields = request.model_dump(mode="json", exclude_unset=True)
    words = json.dumps(fields, sort_keys=True) + identity
    return hashlib.sha256(words.encode()).hexdigest()
