"""A job's end is told at its webhook: signed, again where it fails, at least once, and to nobody private."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from redis import Redis
from standardwebhooks import Webhook

from shared.connection import connect_async
from shared.keys import WEBHOOKS, webhook_key
from shared.protocol import FinishReason, JobStatus
from shared.webhooks.deliveries import Delivery, enqueue, take_due
from tests.gateway import PlayedWorker, RunningGateway
from tests.receiver import Received, Receiver, running_receiver
from tests.servers import wait_for

MODEL = "smollm2"
SECRET = "whsec_" + "QUJD" * 8
Start = Callable[..., RunningGateway]


@pytest.fixture
def start(valkey_url: str, flushed: Redis) -> Iterator[Start]:
    running: list[RunningGateway] = []

    def start_one(**settings: object) -> RunningGateway:
        fields = {
            "webhook_secret": SECRET,
            "webhook_allow_private": True,
            "webhook_retry_s": 0.05,
            "webhook_timeout_s": 5,
        }
        gateway = RunningGateway(valkey_url, model=MODEL, **fields | settings)
        running.append(gateway.start())
        return gateway

    yield start_one
    for gateway in running:
        gateway.stop()


@pytest.fixture
def worker(flushed: Redis, start: Start) -> PlayedWorker:
    return PlayedWorker(flushed, "worker-0", MODEL)


def submit(gateway: RunningGateway, url: str) -> httpx.Response:
    with gateway.client() as http:
        return http.post("/generate", json={"prompt": "x", "webhook_url": url})


def webhook_state(gateway: RunningGateway, job_id: str) -> Any:
    with gateway.client() as http:
        return http.get(f"/jobs/{job_id}").json()["webhook"]


def settled(redis: Redis) -> bool:
    return not redis.zcard(WEBHOOKS)


def verified(received: Received) -> Any:
    return Webhook(SECRET).verify(received.body, received.headers)


def take(valkey_url: str, lease_ms: int) -> list[Delivery]:
    """As a gateway does that is killed right after."""

    async def take_them() -> list[Delivery]:
        client = connect_async(valkey_url)
        try:
            return await take_due(client, lease_ms=lease_ms, most=8, most_per_host=8, busy=[])
        finally:
            await client.aclose()

    return asyncio.run(take_them())


def test_the_end_of_a_job_is_told_signed_and_once(
    start: Start, worker: PlayedWorker, flushed: Redis
) -> None:
    gateway = start()
    with running_receiver() as receiver:
        job_id = submit(gateway, f"{receiver.url}/hook?token=s3").json()["job_id"]
        before = webhook_state(gateway, job_id)
        worker.play("he", "llo")
        wait_for(lambda: webhook_state(gateway, job_id)["delivered_at"], "it is delivered")
        (got,) = receiver.received
    assert before == {
        "url": f"{receiver.url}/hook?...",
        "attempts": 0,
        "delivered_at": None,
        "last_error": None,
    }
    assert got.path == "/hook?token=s3"
    assert got.headers["Host"] == receiver.url.removeprefix("http://")
    told = verified(got)
    assert told["type"] == "job.completed"
    with gateway.client() as http:
        job = http.get(f"/jobs/{job_id}").json()
        assert http.get("/metrics").json()["webhooks"] == {"delivered": 1, "dropped": 0}
    job.pop("webhook")
    links = {"job": f"/jobs/{job_id}"}
    assert told["data"] == job | {"links": links, "text_omitted": False}
    assert told["data"]["text"] == "hello"
    assert settled(flushed)


@pytest.mark.usefixtures("worker")
def test_a_job_that_is_cancelled_in_its_queue_is_told_too(start: Start) -> None:
    gateway = start()
    with running_receiver() as receiver, gateway.client() as http:
        job_id = submit(gateway, receiver.url).json()["job_id"]
        http.delete(f"/jobs/{job_id}")
        wait_for(lambda: receiver.received, "it is told")
        told = verified(receiver.received[0])
    assert (told["type"], told["data"]["job_id"]) == ("job.cancelled", job_id)


def test_a_job_that_failed_is_told_too(start: Start, worker: PlayedWorker) -> None:
    gateway = start()
    with running_receiver() as receiver:
        submit(gateway, receiver.url)
        job_id = worker.take()
        worker.start(job_id)
        worker.end(job_id, 0, JobStatus.FAILED, FinishReason.ERROR)
        wait_for(lambda: receiver.received, "it is told")
        assert verified(receiver.received[0])["type"] == "job.failed"


def test_a_long_text_is_left_out_and_said_to_be(start: Start, worker: PlayedWorker) -> None:
    gateway = start()
    with running_receiver() as receiver:
        submit(gateway, receiver.url)
        worker.play("x" * 70_000)
        wait_for(lambda: receiver.received, "it is told")
        data = verified(receiver.received[0])["data"]
    assert (data["text"], data["text_omitted"]) == (None, True)


def test_what_fails_comes_again_under_the_same_id(start: Start, worker: PlayedWorker) -> None:
    gateway = start()
    with running_receiver(500, 503, 204) as receiver:
        job_id = submit(gateway, receiver.url).json()["job_id"]
        worker.play("a")
        wait_for(lambda: webhook_state(gateway, job_id)["delivered_at"], "it is delivered")
        first, second, third = receiver.received
    assert verified(first) == verified(second) == verified(third)
    assert {got.headers["webhook-id"] for got in receiver.received} == {f"job_{job_id}"}
    state = webhook_state(gateway, job_id)
    assert (state["attempts"], state["last_error"]) == (3, None)


@pytest.mark.parametrize(
    ("status", "attempts", "word"), [(500, 3, "500"), (302, 3, "302"), (410, 1, "gone")]
)
def test_what_is_never_taken_is_given_up(
    start: Start, worker: PlayedWorker, flushed: Redis, status: int, attempts: int, word: str
) -> None:
    gateway = start(webhook_max_attempts=3)
    with running_receiver() as elsewhere, running_receiver(status) as receiver:
        receiver.location = elsewhere.url
        job_id = submit(gateway, receiver.url).json()["job_id"]
        worker.play("a")
        wait_for(lambda: receiver.received and settled(flushed), "it is given up")
        assert len(receiver.received) == attempts
        assert elsewhere.received == [], "a redirect is not followed"
    state = webhook_state(gateway, job_id)
    assert (state["attempts"], state["delivered_at"]) == (attempts, None)
    assert word in state["last_error"]
    with gateway.client() as http:
        assert http.get("/metrics").json()["webhooks"] == {"delivered": 0, "dropped": 1}


def test_a_slow_receiver_fails_by_its_time_and_holds_up_no_other(
    start: Start, worker: PlayedWorker
) -> None:
    gateway = start(webhook_timeout_s=1, webhook_max_attempts=1)
    with running_receiver(is_held=True) as slow, running_receiver() as quick:
        slow_ids = [submit(gateway, slow.url).json()["job_id"] for _ in range(12)]
        for _ in slow_ids:
            worker.play("a")
        wait_for(lambda: slow.received, "the slow one is being told")
        submit(gateway, quick.url)
        worker.play("b")
        wait_for(lambda: quick.received, "the quick one is told")
        assert len(slow.received) < len(slow_ids)
        wait_for(lambda: webhook_state(gateway, slow_ids[0])["last_error"], "the first is given up")
        assert "within 1 s" in webhook_state(gateway, slow_ids[0])["last_error"]


def test_nobody_there_is_no_connection(start: Start, worker: PlayedWorker, flushed: Redis) -> None:
    gateway = start(webhook_max_attempts=1)
    with running_receiver() as gone:
        pass
    job_id = submit(gateway, gone.url).json()["job_id"]
    worker.play("a")
    wait_for(lambda: webhook_state(gateway, job_id)["last_error"], "it failed")
    assert "no connection" in webhook_state(gateway, job_id)["last_error"]
    assert settled(flushed)


def test_of_two_gateways_one_sends(start: Start, worker: PlayedWorker, flushed: Redis) -> None:
    one, _ = start(), start()
    with running_receiver(is_held=True) as receiver:
        submit(one, receiver.url)
        worker.play("a")
        wait_for(lambda: receiver.received, "it is being sent")
        due: Any = flushed.zrange(WEBHOOKS, 0, -1, withscores=True)
        # What the other one would take now: nothing, and it looks twice a second.
        assert take_at_once(one, receiver) == []
        receiver.may_answer.set()
        wait_for(lambda: settled(flushed), "it is settled")
        assert len(receiver.received) == 1
    assert len(due) == 1


def take_at_once(gateway: RunningGateway, receiver: Receiver) -> list[Delivery]:
    assert receiver.received
    return take(gateway.settings.redis_url, 60_000)


def test_what_a_killed_gateway_was_sending_is_sent_by_another(
    start: Start, worker: PlayedWorker, valkey_url: str, flushed: Redis
) -> None:
    first = start(webhook_secret="")  # it takes jobs no webhook, and sends none
    with running_receiver() as receiver:
        assert submit(first, receiver.url).status_code == 422
        enqueue(flushed, "batch_1", f"{receiver.url}/b", "batch.completed", '{"id": "b"}', ttl_s=60)
        (taken,) = take(valkey_url, lease_ms=700)
        assert (taken.delivery_id, taken.attempt) == ("batch_1", 1)
        assert take(valkey_url, lease_ms=700) == []
        start()
        wait_for(lambda: settled(flushed), "it is sent when the lease is over")
        (got,) = receiver.received
    told = verified(got)
    assert (told["type"], told["data"]) == ("batch.completed", {"id": "b"})
    assert got.headers["webhook-id"] == "batch_1"
    assert flushed.hget(webhook_key("batch_1"), "attempts") == b"2"


def test_a_delivery_that_is_put_twice_is_one(start: Start, flushed: Redis) -> None:
    with running_receiver() as receiver:
        for _ in range(2):
            enqueue(flushed, "b", receiver.url, "batch.completed", "{}", ttl_s=60)
        start()
        wait_for(lambda: settled(flushed), "it is sent")
        enqueue(flushed, "b", receiver.url, "batch.completed", "{}", ttl_s=60)
        assert settled(flushed)
        assert len(receiver.received) == 1


def test_a_private_address_is_refused_at_once(start: Start) -> None:
    gateway = start(webhook_allow_private=False)
    answer = submit(gateway, "http://127.0.0.1:9/x")
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "webhook_url"
    assert "not a public address" in answer.json()["error"]["message"]


def test_a_name_of_a_private_address_is_refused_when_it_is_sent(
    start: Start, worker: PlayedWorker, flushed: Redis
) -> None:
    gateway = start(webhook_allow_private=False)
    with running_receiver() as receiver:
        url = receiver.url.replace("127.0.0.1", "localhost")
        job_id = submit(gateway, url).json()["job_id"]
        worker.play("a")
        wait_for(lambda: webhook_state(gateway, job_id)["last_error"], "it is refused")
        assert receiver.received == []
    state = webhook_state(gateway, job_id)
    assert state["attempts"] == 1
    assert "not public" in state["last_error"]
    assert settled(flushed)


def test_a_gateway_without_a_secret_names_what_is_missing(start: Start) -> None:
    answer = submit(start(webhook_secret=""), "https://example.com/hook")
    assert answer.status_code == 422
    assert "MINI_VLLM_WEBHOOK_SECRET" in answer.json()["error"]["message"]


def test_the_proxies_of_the_environment_are_not_used(
    start: Start, worker: PlayedWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_receiver() as proxy, running_receiver() as receiver:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        gateway = start()
        with httpx.Client(base_url=gateway.url, trust_env=False) as http:
            http.post("/generate", json={"prompt": "x", "webhook_url": receiver.url})
        worker.play("a")
        wait_for(lambda: receiver.received, "it is told")
        assert proxy.received == []


def test_damage_in_redis_stops_no_delivery(start: Start, flushed: Redis) -> None:
    flushed.set(webhook_key("text"), "x")
    flushed.hset(webhook_key("half"), mapping={"url": "no url", "attempts": "many"})
    flushed.zadd(WEBHOOKS, {"text": 0, "half": 0, "gone": 0})
    with running_receiver() as receiver:
        flushed.hset(webhook_key("odd"), mapping={"url": receiver.url, "data": "no JSON"})
        flushed.zadd(WEBHOOKS, {"odd": 0})
        enqueue(flushed, "good", receiver.url, "batch.completed", json.dumps({}), ttl_s=60)
        start()
        wait_for(lambda: receiver.received, "the good one is sent")
        wait_for(lambda: settled(flushed), "the others are forgotten")
        assert [got.headers["webhook-id"] for got in receiver.received] == ["good"]
