"""``/v1/batches`` with OpenAI's own client, on a real Valkey, with workers that a test plays."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import psutil
import pytest
from redis import Redis

from shared.keys import (
    JOBS,
    OPEN_BATCHES,
    SERVED,
    batch_key,
    batch_lease_key,
    file_readers_key,
    job_key,
    queue_key,
)
from shared.protocol import FinishReason, JobStatus
from shared.scripts import run_script
from tests.batches import (
    CHAT,
    FINAL,
    client_of,
    create,
    ids,
    left_in,
    line,
    lines,
    rows,
    wait_until,
)
from tests.busy_worker import BusyWorker
from tests.gateway import PlayedWorker, RunningGateway
from tests.gateway_process import running
from tests.servers import wait_for

MODEL = "smollm2"
LOW = queue_key(f"{MODEL}:low")


@pytest.fixture
def batches(valkey_url: str, flushed: Redis, tmp_path: Path) -> Iterator[RunningGateway]:
    del flushed
    gateway = RunningGateway(
        valkey_url, data_dir=tmp_path, api_keys="alice,bob", worker_grace_s=3600, batch_lease_s=1
    )
    yield gateway.start()
    gateway.stop()


@pytest.fixture
def alice(batches: RunningGateway) -> openai.OpenAI:
    return client_of(batches, "alice")


@pytest.fixture
def busy(flushed: Redis, batches: RunningGateway) -> Iterator[BusyWorker]:
    del batches
    with BusyWorker(flushed, "worker-0", MODEL, beat_ms=3_600_000) as worker:
        yield worker


@pytest.mark.usefixtures("busy")
def test_every_line_is_answered_in_its_order(
    alice: openai.OpenAI, flushed: Redis, tmp_path: Path
) -> None:
    content = line(0) + b"\n" + line(1, n=3) + b"".join(line(i) for i in range(2, 50))
    batch = create(alice, content, metadata={"of": "tuesday"})
    assert (batch.status, batch.metadata) == ("validating", {"of": "tuesday"})
    batch = wait_until(alice, batch)
    assert batch.status == "completed"
    assert batch.request_counts
    assert batch.request_counts.model_dump() == {"total": 50, "completed": 50, "failed": 0}
    assert batch.usage
    assert (batch.usage.input_tokens, batch.usage.output_tokens) == (150, 52)
    times = [batch.created_at, batch.in_progress_at, batch.finalizing_at, batch.completed_at]
    assert times == sorted(time for time in times if time)
    assert batch.expires_at == batch.created_at + 86_400
    found = rows(alice, batch.output_file_id)
    assert ids(found) == [f"c{i}" for i in range(50)]
    assert {row["response"]["status_code"] for row in found} == {200}
    assert len(found[1]["response"]["body"]["choices"]) == 3
    assert found[0]["response"]["body"]["object"] == "chat.completion"
    assert batch.error_file_id is None
    assert left_in(tmp_path / "files") == []
    assert not flushed.exists(OPEN_BATCHES, batch_lease_key(batch.id))
    assert not flushed.zcard(JOBS), "done lines leave the list of jobs"


@pytest.mark.usefixtures("busy")
def test_a_line_that_cannot_be_answered_is_told_in_the_error_file(
    alice: openai.OpenAI, batches: RunningGateway
) -> None:
    most = batches.settings.max_prompt_chars
    long = [{"role": "user", "content": "y" * (most + 1)}]
    batch = wait_until(alice, create(alice, line(0) + line(1, messages=long) + line(2)))
    assert (batch.status, ids(rows(alice, batch.output_file_id))) == ("completed", ["c0", "c2"])
    (failed,) = rows(alice, batch.error_file_id)
    assert (failed["custom_id"], failed["response"]["status_code"]) == ("c1", 400)
    assert str(most) in failed["response"]["body"]["error"]["message"]
    assert failed["error"]["code"] == "invalid_request"
    assert batch.request_counts
    assert batch.request_counts.model_dump() == {"total": 3, "completed": 2, "failed": 1}


def test_a_file_with_bad_lines_fails_as_a_whole(alice: openai.OpenAI, flushed: Redis) -> None:
    bad = [
        b"{",
        line(0),
        line(0),
        line(1, stream=True),
        line(2, surprise=1),
        line(3, model="nobody"),
        line(4).replace(b"chat/", b""),
        line(5).replace(b"POST", b"GET"),
    ]
    batch = wait_until(alice, create(alice, b"\n".join(row.strip() for row in bad)))
    assert batch.status == "failed"
    assert batch.failed_at
    assert batch.errors
    assert batch.errors.data
    assert [(e.line, e.code, e.param) for e in batch.errors.data] == [
        (1, "invalid_json_line", None),
        (3, "duplicate_custom_id", "custom_id"),
        (4, "invalid_request", "stream"),
        (5, "invalid_request", "surprise"),
        (7, "url_mismatch", "url"),
        (8, "invalid_method", "method"),
        (6, "model_not_found", "model"),
    ]
    assert not flushed.exists(LOW, file_readers_key(batch.input_file_id))


def test_only_a_window_of_a_batch_is_in_the_queue_and_a_cancel_keeps_what_was_done(
    alice: openai.OpenAI, flushed: Redis
) -> None:
    worker = PlayedWorker(flushed, "worker-0", MODEL, beat_ms=3_600_000)
    batch = create(alice, lines(700))
    wait_for(lambda: flushed.llen(LOW) == 16, "the window is full")
    for _ in range(20):
        worker.play("a")
    held = [worker.take() for _ in range(2)]
    wait_until(alice, batch, "in_progress")
    wait_for(lambda: flushed.llen(LOW) >= 12, "the window is full again")
    assert flushed.llen(LOW) <= 16
    cancelling = alice.batches.cancel(batch.id)
    assert (cancelling.status, bool(cancelling.cancelling_at)) == ("cancelling", True)
    wait_for(lambda: flushed.hexists(job_key(held[0]), "cancel"), "what runs is told to end")
    worker.start(held[0])
    worker.token(held[0], 0, "late")
    worker.end(held[0], 1)
    worker.end(held[1], 0, JobStatus.CANCELLED, FinishReason.CANCELLED)
    batch = wait_until(alice, batch)
    assert (batch.status, bool(batch.cancelled_at)) == ("cancelled", True)
    done, others = rows(alice, batch.output_file_id), rows(alice, batch.error_file_id)
    assert ids(done) == [f"c{i}" for i in range(21)]
    assert ids(others) == [f"c{i}" for i in range(21, 700)]
    assert {row["error"]["code"] for row in others} == {"batch_cancelled"}
    assert batch.request_counts
    assert batch.request_counts.model_dump() == {"total": 700, "completed": 21, "failed": 0}
    assert alice.batches.cancel(batch.id).status == "cancelled"
    assert flushed.llen(LOW) == 0


@pytest.mark.usefixtures("busy")
def test_one_that_has_ended_is_not_cancelled(alice: openai.OpenAI) -> None:
    batch = wait_until(alice, create(alice, lines(1)))
    with pytest.raises(openai.ConflictError) as refused:
        alice.batches.cancel(batch.id)
    assert refused.value.code == "batch_ended"
    assert "completed" in refused.value.message


def test_after_its_window_it_expires_with_what_was_done(
    alice: openai.OpenAI, flushed: Redis
) -> None:
    worker = PlayedWorker(flushed, "worker-0", MODEL, beat_ms=3_600_000)
    batch = create(alice, lines(30))
    worker.play("a")
    wait_for(lambda: alice.batches.retrieve(batch.id).request_counts.completed == 1, "one is done")  # type: ignore[union-attr]
    # Its holder reads when it ends as it takes it: another one has to.
    flushed.hset(batch_key(batch.id), "expires_at", 1)
    flushed.hincrby(batch_key(batch.id), "fence", 1)
    flushed.delete(batch_lease_key(batch.id))
    batch = wait_until(alice, batch)
    assert (batch.status, bool(batch.expired_at)) == ("expired", True)
    assert ids(rows(alice, batch.output_file_id)) == ["c0"]
    others = rows(alice, batch.error_file_id)
    assert ids(others) == [f"c{i}" for i in range(1, 30)]
    assert {row["error"]["code"] for row in others} == {"batch_expired"}
    assert flushed.llen(LOW) == 0


def test_who_has_lost_a_batch_records_nothing_more(flushed: Redis) -> None:
    batch_id = "batch_" + "0" * 32
    args = (batch_id, "digest", "{}", "", "file-1", 10, 86_400, 3600)
    assert run_script(flushed, "create_batch", *args) == b"new"
    assert run_script(flushed, "create_batch", *args) == b"same"
    first = run_script(flushed, "claim_batch", batch_id, 60_000)
    assert first == 1
    assert run_script(flushed, "claim_batch", batch_id, 60_000) == 0
    flushed.delete(batch_lease_key(batch_id))  # as if its time had passed
    assert run_script(flushed, "claim_batch", batch_id, 60_000) == 2

    def move(fence: int, before: str, after: str, *fields: str) -> object:
        return run_script(
            flushed, "move_batch", batch_id, fence, 60_000, before, after, 60, *fields
        )

    assert move(1, "", "", "progress", "old") == b"fenced"
    assert move(2, "", "", "progress", "new")[:2] == [1, b"validating"]  # type: ignore[index]
    assert flushed.hget(batch_key(batch_id), "progress") == b"new"
    assert run_script(flushed, "cancel_batch", batch_id) == b"cancelling"
    assert move(2, "validating", "in_progress", "total", "5")[:2] == [0, b"cancelling"]  # type: ignore[index]
    assert not flushed.hexists(batch_key(batch_id), "total")


@pytest.mark.usefixtures("busy")
def test_a_killed_gateway_costs_nothing(
    alice: openai.OpenAI,
    batches: RunningGateway,
    valkey_url: str,
    flushed: Redis,
    tmp_path: Path,
) -> None:
    """Another one, which shares the folder, had the batch and is gone; the lines go on where they were."""
    environment = {
        "MINI_VLLM_DATA_DIR": str(tmp_path),
        "MINI_VLLM_API_KEYS": "alice,bob",
        "MINI_VLLM_WORKER_GRACE_S": "3600",
        "MINI_VLLM_BATCH_LEASE_S": "1",
    }
    batches.app.state.gateway.drain._is_closing = True
    batches.app.state.gateway.drain.request(0)
    with running(valkey_url, **environment) as other:
        client = openai.OpenAI(base_url=other.url + "/v1", api_key="alice", max_retries=0)
        batch = create(client, lines(2000))
        wait_for(
            lambda: client.batches.retrieve(batch.id).request_counts.completed >= 200,  # type: ignore[union-attr]
            "some are done",
        )
        other.signal(signal.SIGKILL)
        other.wait()
    fence = int(flushed.hget(batch_key(batch.id), "fence") or 0)
    assert alice.batches.retrieve(batch.id).status == "in_progress"
    batches.app.state.gateway.drain._is_closing = False
    batches.app.state.gateway.drain._until_s = None
    batch = wait_until(alice, batch, deadline_s=60)
    assert int(flushed.hget(batch_key(batch.id), "fence") or 0) == fence + 1
    assert batch.status == "completed"
    assert ids(rows(alice, batch.output_file_id)) == [f"c{i}" for i in range(2000)]
    assert batch.request_counts
    assert batch.request_counts.completed == 2000
    assert left_in(tmp_path / "files") == []


def test_jobs_that_redis_has_lost_are_submitted_again(alice: openai.OpenAI, flushed: Redis) -> None:
    batch = create(alice, lines(5))
    wait_for(lambda: flushed.llen(LOW) == 5, "all wait")
    waiting: Any = flushed.lrange(LOW, 0, -1)
    for job_id in waiting:
        flushed.delete(job_key(job_id.decode()))
    flushed.delete(LOW)
    wait_for(lambda: flushed.llen(LOW) == 5, "all wait again")
    with BusyWorker(flushed, "worker-0", MODEL, beat_ms=3_600_000):
        batch = wait_until(alice, batch)
    assert ids(rows(alice, batch.output_file_id)) == [f"c{i}" for i in range(5)]


def test_without_a_worker_it_waits(alice: openai.OpenAI, flushed: Redis) -> None:
    flushed.hdel(SERVED, MODEL)
    batch = create(alice, lines(5))
    wait_until(alice, batch, "in_progress")
    assert flushed.llen(LOW) == 0
    with BusyWorker(flushed, "worker-0", MODEL, beat_ms=3_600_000):
        assert wait_until(alice, batch).status == "completed"


def test_it_leaves_half_of_a_small_queue_to_others(
    valkey_url: str, flushed: Redis, tmp_path: Path
) -> None:
    gateway = RunningGateway(valkey_url, data_dir=tmp_path, max_queued_jobs=6).start()
    client = client_of(gateway)
    batch = create(client, lines(20))
    wait_for(lambda: flushed.llen(LOW) == 3, "the window is full")
    assert [client.batches.retrieve(batch.id).status for _ in range(20)] == ["in_progress"] * 20
    assert flushed.llen(LOW) == 3
    gateway.stop()


@pytest.mark.usefixtures("busy")
def test_a_batch_is_its_owners_and_is_listed_in_pages(
    alice: openai.OpenAI, batches: RunningGateway
) -> None:
    made = [create(alice, line(i)) for i in range(5)]
    listed = [batch.id for batch in alice.batches.list(limit=2)]
    assert listed == [batch.id for batch in made[::-1]]
    bob = client_of(batches, "bob")
    assert not list(bob.batches.list())
    for call in (bob.batches.retrieve, bob.batches.cancel):
        with pytest.raises(openai.NotFoundError) as missing:
            call(made[0].id)
        assert missing.value.code == "batch_not_found"
    with pytest.raises(openai.NotFoundError):
        bob.batches.create(
            input_file_id=made[0].input_file_id, endpoint=CHAT, completion_window="24h"
        )
    for batch in made:
        wait_until(alice, batch)


def test_the_same_idempotency_key_is_the_same_batch(alice: openai.OpenAI) -> None:
    file = alice.files.create(file=("a", lines(1)), purpose="batch")

    def again(**metadata: str) -> str:
        return alice.batches.create(
            input_file_id=file.id,
            endpoint=CHAT,
            completion_window="24h",
            metadata=metadata,
            extra_headers={"Idempotency-Key": "one"},
        ).id

    assert again() == again()
    with pytest.raises(openai.ConflictError):
        again(other="x")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"completion_window": "48h"}, "completion_window"),
        ({"endpoint": "/v1/embeddings"}, "endpoint"),
        ({"metadata": {str(i): "x" for i in range(17)}}, "metadata"),
        ({"metadata": {"x": "y" * 513}}, "metadata"),
        ({"surprise": 1}, "surprise"),
        ({"output_expires_after": {"anchor": "created_at", "seconds": 1}}, "output_expires_after"),
    ],
)
def test_what_is_not_honoured_is_refused_by_name(
    batches: RunningGateway, fields: dict[str, object], field: str
) -> None:
    body = {"input_file_id": "file-" + "0" * 32, "endpoint": CHAT, "completion_window": "24h"}
    with batches.client() as http:
        headers = {"Authorization": "Bearer alice"}
        response = http.post("/v1/batches", json=body | fields, headers=headers)
    assert response.status_code == 400
    assert field in response.json()["error"]["message"]


def test_50_000_lines_are_accepted_and_cancelled_without_being_held(
    alice: openai.OpenAI, flushed: Redis
) -> None:
    content = b"".join(
        line(i, messages=[{"role": "user", "content": "z" * 800}]) for i in range(50_000)
    )
    assert len(content) > 45_000_000
    batch = create(alice, content)
    del content
    process = psutil.Process()
    before = process.memory_info().rss
    highest = before

    def is_checked() -> bool:
        nonlocal highest
        highest = max(highest, process.memory_info().rss)
        return alice.batches.retrieve(batch.id).status not in ("validating", "cancelling")

    wait_for(is_checked, "the file is checked", 120)
    counts = alice.batches.retrieve(batch.id).request_counts
    assert counts
    assert counts.total == 50_000
    alice.batches.cancel(batch.id)
    wait_for(
        lambda: is_checked() and alice.batches.retrieve(batch.id).status in FINAL, "it ends", 120
    )
    assert highest - before < 40_000_000
    ended = alice.batches.retrieve(batch.id)
    assert ended.error_file_id
    told = alice.files.content(ended.error_file_id).text.splitlines()
    assert [json.loads(raw)["custom_id"] for raw in told] == [f"c{i}" for i in range(50_000)]
    assert flushed.llen(LOW) == 0
