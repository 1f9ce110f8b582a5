"""What passes does not end a batch: a full store, a Redis that is away."""

import errno
from pathlib import Path

import openai
import pytest
from redis import Redis

from api.files.store import storage_errors
from shared.connection import connect
from shared.errors import StorageFull, StorageUnusable
from shared.keys import JOBS, queue_key
from tests.batches import client_of, create, ids, line, lines, rows, wait_until
from tests.busy_worker import BusyWorker
from tests.gateway import PlayedWorker, RunningGateway
from tests.servers import Valkey, wait_for

MODEL = "smollm2"
LOW = queue_key(f"{MODEL}:low")


def test_a_batch_waits_while_the_store_is_full(
    valkey_url: str, flushed: Redis, tmp_path: Path
) -> None:
    gateway = RunningGateway(
        valkey_url, data_dir=tmp_path, file_store_max_bytes=1_048_576, worker_grace_s=3600
    ).start()
    client = client_of(gateway)
    batch = create(client, lines(30))
    wait_for(lambda: flushed.llen(LOW) == 16, "it runs")
    filler = client.files.create(file=("filler", bytes(950_000)), purpose="batch")
    with BusyWorker(flushed, "worker-0", MODEL, beat_ms=3_600_000):
        wait_for(lambda: not flushed.llen(LOW), "what was in the queue is done")
        assert wait_until(client, batch, "in_progress").output_file_id is None
        with pytest.raises(openai.APIStatusError):
            client.files.create(file=("more", b"x"), purpose="batch")
        client.files.delete(filler.id)
        batch = wait_until(client, batch)
    assert batch.status == "completed"
    assert ids(rows(client, batch.output_file_id)) == [f"c{i}" for i in range(30)]
    gateway.stop()


def test_a_batch_goes_on_after_redis_was_away(valkey: Valkey, tmp_path: Path) -> None:
    gateway = RunningGateway(
        valkey.url, data_dir=tmp_path, worker_grace_s=3600, batch_lease_s=1
    ).start()
    client, redis = client_of(gateway), connect(valkey.url)
    batch = create(client, lines(40))
    worker = PlayedWorker(redis, "worker-0", MODEL, beat_ms=3_600_000)
    for _ in range(10):
        worker.play("a")
    valkey.stop()
    with pytest.raises(openai.InternalServerError):
        client.batches.retrieve(batch.id)
    valkey.start()
    redis = connect(valkey.url)
    with BusyWorker(redis, "worker-1", MODEL, beat_ms=3_600_000):
        batch = wait_until(client, batch)
    assert batch.status == "completed"
    assert ids(rows(client, batch.output_file_id)) == [f"c{i}" for i in range(40)]
    assert not redis.zcard(JOBS)
    gateway.stop()


def test_a_line_whose_job_was_deleted_by_somebody_is_a_failure(
    valkey_url: str, flushed: Redis, tmp_path: Path
) -> None:
    gateway = RunningGateway(valkey_url, data_dir=tmp_path, worker_grace_s=3600).start()
    client = client_of(gateway)
    batch = create(client, line(0) + line(1))
    wait_for(lambda: flushed.llen(LOW) == 2, "both wait")
    job_id = flushed.lindex(LOW, 1)
    assert isinstance(job_id, bytes)
    with gateway.client() as http:
        assert http.delete(f"/jobs/{job_id.decode()}").json()["status"] == "cancelled"
    with BusyWorker(flushed, "worker-0", MODEL, beat_ms=3_600_000):
        batch = wait_until(client, batch)
    assert (batch.status, ids(rows(client, batch.output_file_id))) == ("completed", ["c0"])
    (failed,) = rows(client, batch.error_file_id)
    assert (failed["custom_id"], failed["error"]["code"]) == ("c1", "job_cancelled")
    gateway.stop()


def test_what_the_file_system_says_becomes_an_error_with_a_code() -> None:
    with pytest.raises(StorageFull), storage_errors():
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(StorageUnusable), storage_errors():
        raise PermissionError(errno.EACCES, "Permission denied")
    with pytest.raises(FileNotFoundError), storage_errors():
        raise FileNotFoundError
