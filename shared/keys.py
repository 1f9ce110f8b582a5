"""Every Redis key and queue name in one place, with the units of what is kept there.

The Lua scripts in ``shared/lua`` build the same names (``common.lua``, with those that they alone use);
a test keeps the two in line.
Keys are computed inside scripts, so one Redis is needed, not a Redis Cluster.
"""

PREFIX = "mini-vllm:"

#: Queue suffixes in the order in which workers empty them.
PRIORITIES = ("high", "normal", "low")

#: Where jobs wait of which too many workers died: each is run alone.
SUSPECT = "suspect"

#: What an RQ job of ours names as its function; workers never import it, they read ``args[0]``.
JOB_FUNCTION = "mini_vllm.generate"

#: Set of live worker incarnations; leaving it makes every later write of that incarnation void.
WORKERS = PREFIX + "workers"

#: Sorted set of job ids by creation time in ms, newest last, for ``GET /jobs``.
JOBS = PREFIX + "jobs"

#: Set of the ids of jobs that have not ended.
OPEN = PREFIX + "open"

#: Sorted set of queued job ids by deadline in ms.
DEADLINES = PREFIX + "deadlines"

#: Hash of totals of buried workers and of jobs that ended without a worker.
SERVICE_TOTALS = PREFIX + "totals"


#: Hash: characters of prompt that wait by model, jobs that wait by owner.
WAITING = PREFIX + "waiting"

#: Hash: model -> when a worker of it last beat, in ms.
SERVED = PREFIX + "served"

#: Hash: name of a worker that could not start -> what it said (JSON); it expires.
FAILURES = PREFIX + "failures"

#: Set of the owners whose jobs have a list of their own.
OWNERS = PREFIX + "owners"

#: Stream: which jobs have new events, ids joined by spaces; short, for the gateways' hubs.
NEWS = PREFIX + "news"

#: Sorted set of the ids of deliveries to webhooks that are not settled, by when they are due in ms.
WEBHOOKS = PREFIX + "webhooks"

#: Sorted set of batch ids by creation time in ms; with ``:<owner>`` those of one owner.
BATCHES = PREFIX + "batches"

#: Set of the ids of batches that have not ended, or of whose end nobody has told yet.
OPEN_BATCHES = PREFIX + "open-batches"

#: Stream: what the service did in each stretch of the last hour (field ``p``, JSON), for the dashboard.
HISTORY = PREFIX + "history"

#: String: the totals as they were at the last point of ``HISTORY`` (JSON).
HISTORY_SAMPLE = PREFIX + "history-sample"

#: String: what makes job ids of idempotency keys unguessable; drawn once.
SECRET = PREFIX + "secret"

#: String: the log level of all processes, where an operator has set one.
LOG_LEVEL = PREFIX + "log-level"


def queue_name(model: str, priority: str) -> str:
    """RQ's name of a queue; the list is at ``rq:queue:<name>``."""
    return f"{model}:{priority}"


def queue_key(name: str) -> str:
    """List: RQ's queue of that name."""
    return f"rq:queue:{name}"


def jobs_key(owner: str) -> str:
    """Sorted set like ``JOBS``, of one owner."""
    return f"{JOBS}:{owner}" if owner else JOBS


def requests_key(owner: str) -> str:
    """List: when the owner's latest requests came, in ms, newest first."""
    return f"{PREFIX}requests:{owner}"


def job_key(job_id: str) -> str:
    """Hash: our record of one job (owner, attempt, token count, times in ms, terminal event)."""
    return f"{PREFIX}job:{job_id}"


def webhook_key(delivery_id: str) -> str:
    """Hash: one delivery (URL, what it tells of, attempts, error, times in ms)."""
    return f"{PREFIX}webhook:{delivery_id}"


def asks_key(model: str) -> str:
    """List: questions that wait for a worker of that model, beside the jobs; the oldest first."""
    return f"{PREFIX}asks:{model}"


def answerers_key(model: str) -> str:
    """String with a TTL: there while a worker of that model answers questions."""
    return f"{PREFIX}answerers:{model}"


def answer_key(ask_id: str) -> str:
    """String with a TTL: the answer to one question (JSON)."""
    return f"{PREFIX}answer:{ask_id}"


def answered_key(gateway_id: str) -> str:
    """Stream: ids of a gateway's questions that are answered; short, and it expires."""
    return f"{PREFIX}answered:{gateway_id}"


def stream_key(job_id: str) -> str:
    """Stream: the job's events, oldest first."""
    return f"{PREFIX}stream:{job_id}"


def worker_key(incarnation: str) -> str:
    """Hash: what a worker says of itself (field ``report``, JSON), refreshed by its heartbeat."""
    return f"{PREFIX}worker:{incarnation}"


def worker_totals_key(incarnation: str) -> str:
    """Hash: the absolute totals of one incarnation."""
    return f"{PREFIX}worker-totals:{incarnation}"


def beat_key(incarnation: str) -> str:
    """String with a TTL: there while the worker's heartbeat is fresh."""
    return f"{PREFIX}beat:{incarnation}"


def taken_key(incarnation: str) -> str:
    """Set: ids of the jobs that a worker holds."""
    return f"{PREFIX}taken:{incarnation}"


def bell_key(incarnation: str) -> str:
    """List of at most one element: an idle worker blocks on it until there is work."""
    return f"{PREFIX}bell:{incarnation}"


def wake_key(gateway_id: str) -> str:
    """Stream that a gateway's hub reads beside the jobs' streams, to be woken when a follower joins."""
    return f"{PREFIX}wake:{gateway_id}"


def batches_key(owner: str) -> str:
    """Sorted set like ``BATCHES``, of one owner."""
    return f"{BATCHES}:{owner}" if owner else BATCHES


def batch_key(batch_id: str) -> str:
    """Hash: one batch (what was asked for, status, times in s, progress, fence)."""
    return f"{PREFIX}batch:{batch_id}"


def batch_lease_key(batch_id: str) -> str:
    """String with a TTL: there while a gateway holds the batch; its fence."""
    return f"{PREFIX}batch-lease:{batch_id}"


def file_readers_key(file_id: str) -> str:
    """Set: ids of the batches that have not ended and read this file."""
    return f"{PREFIX}file-readers:{file_id}"


def history_turn_key(bucket: int) -> str:
    """String with a TTL: a gateway has taken the sample of these seconds."""
    return f"{PREFIX}history-turn:{bucket}"


def service_key(model: str) -> str:
    """List: how long the latest completed jobs of a model ran, in ms, newest first."""
    return f"{PREFIX}service-ms:{model}"
