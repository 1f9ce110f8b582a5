"""deploy/redis/users.acl lets gateway and workers do what they do, and nothing more."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

from api.complaints import Complaints
from api.live.history import HistoryWriter
from shared.connection import connect, connect_async
from shared.failures import forget_failure, report_failure
from shared.keys import HISTORY, WEBHOOKS, answerers_key, beat_key
from shared.protocol import JobStatus, WorkerReport, WorkerState
from shared.recovery import Sweeper
from tests.gateway import PlayedWorker, RunningGateway
from tests.links import finish, pop
from tests.receiver import running_receiver
from tests.servers import Valkey, wait_for
from tests.service import sse_events
from worker.answers import Answers
from worker.backends.scripted import ScriptedBackend
from worker.heart import Heart, Pulse
from worker.intake import Intake
from worker.link import Link

USERS = Path(__file__).parents[2] / "deploy/redis/users.acl"
MODEL = "smollm2"
_PASSWORD = "change-this-gateway-password"
_KEYS = ("mini-vllm:c", "mini-vllm:d")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Valkey]:
    """It has the users of the file, and one for the test itself."""
    path = tmp_path / "users.acl"
    path.write_text(USERS.read_text() + "user test on nopass ~* &* +@all\n")
    valkey = Valkey("--aclfile", str(path), user="test", password="x")
    yield valkey.start()
    valkey.remove()


def url_of(server: Valkey, user: str) -> str:
    return server.url_for(user, f"change-this-{user}-password")


@pytest.mark.parametrize("user", ["gateway", "worker"])
@pytest.mark.parametrize(
    "command",
    [
        ("FLUSHALL",),
        ("CONFIG", "SET", "dir", "/tmp"),
        ("KEYS", "*"),
        ("SCAN", "0"),
        ("ACL", "LIST"),
        ("SHUTDOWN",),
        ("REPLICAOF", "127.0.0.1", "1"),
        ("MONITOR",),
        ("SCRIPT", "FLUSH"),
        ("GET", "other:key"),
        ("SET", "other", "1"),
        ("EVAL", "return redis.call('SET', 'other', '1')", "0"),
        ("EVAL", "return redis.call('FLUSHALL')", "0"),
        ("PUBLISH", "rq:pubsub:x", "{}"),
    ],
)
def test_nothing_else_is_allowed(server: Valkey, user: str, command: tuple[str, ...]) -> None:
    client = connect(url_of(server, user))
    with pytest.raises((NoPermissionError, ResponseError), match=r"(?i)permission"):
        client.execute_command(*command)  # type: ignore[no-untyped-call]
    client.close()


def test_a_client_without_a_user_is_refused(server: Valkey) -> None:
    with pytest.raises(AuthenticationError):
        connect(f"unix://{server.socket}").ping()


def test_a_job_runs_under_the_two_users(server: Valkey) -> None:
    gateway = RunningGateway(
        url_of(server, "gateway"),
        model=MODEL,
        max_requests_per_minute=1000,
        webhook_secret="any text of some length",
        webhook_allow_private=True,
    )
    client = connect(url_of(server, "worker"))
    intake, link, heart = make_worker(client)
    gateway.start()
    try:
        heart.register()
        intake.open()
        heart.also = intake.beat
        with gateway.client() as http:
            http.headers["Idempotency-Key"] = "k"
            job_id = http.post("/generate", json={"prompt": "x", "timeout_s": 60}).json()["job_id"]
            assert http.post("/generate", json={"prompt": "x", "timeout_s": 60}).status_code == 200
            (popped,) = pop(link)
            assert intake.take(job_id).request.prompt == "x"
            heart.beat()
            intake.beat()
            finish(link, popped)
            intake.settle(job_id, JobStatus.COMPLETED)
            assert http.get(f"/jobs/{job_id}?wait_s=5").json()["status"] == "completed"
            assert "event: end" in http.get(f"/jobs/{job_id}/stream").text
            http.headers.pop("Idempotency-Key")
            failed = http.post("/generate", json={"prompt": "y"}).json()["job_id"]
            (popped,) = pop(link)
            intake.take(failed)
            link.park(failed, popped.attempt)
            intake.release(failed)
            assert http.delete(f"/jobs/{failed}").json()["status"] == "cancelled"
            assert http.get("/jobs").json()["jobs"]
            assert http.get("/metrics").status_code == 200
            report_failure(client, name="w", host="h", model=MODEL, message="it failed")
            assert [f["name"] for f in http.get("/workers").json()["failures"]] == ["w"]
            forget_failure(client, "w")
            link.wait_for_bell(0.01)
            with Answers(connect(url_of(server, "worker")), ScriptedBackend(), MODEL):
                test = connect(server.url)
                wait_for(lambda: test.exists(answerers_key(MODEL)), "somebody answers")
                tokens = http.post("/tokenize", json={"content": "a"}).json()
                assert tokens == {"tokens": [97]}
            with running_receiver() as receiver:
                http.post("/generate", json={"prompt": "w", "webhook_url": receiver.url})
                (popped,) = pop(link)
                finish(link, popped)
                wait_for(lambda: receiver.received and not test.zcard(WEBHOOKS), "it is told")
            lost = PlayedWorker(client, "lost", MODEL)
            lost_job = http.post("/generate", json={"prompt": "z"}).json()["job_id"]
            assert lost.take() == lost_job
            connect(server.url).delete(beat_key("lost"))
            Sweeper(heartbeat_ttl_s=4, max_deaths=3, result_ttl_s=60).bury(
                client, "lost", only_if_lapsed=True
            )
            assert http.get(f"/jobs/{lost_job}").json()["status"] == "queued"
            assert http.delete(f"/jobs/{lost_job}").json()["status"] == "cancelled"
        gateway.do_upkeep()
    finally:
        heart.stop()
        intake.close()
        gateway.stop()
        client.close()
    denied = connect(server.url).execute_command("ACL", "LOG")  # type: ignore[no-untyped-call]
    assert denied == []


def test_the_last_hour_is_written_and_watched_under_the_gateways_user(server: Valkey) -> None:
    url, test = url_of(server, "gateway"), connect(server.url)

    async def write() -> bool:
        client = connect_async(url)
        try:
            writer = HistoryWriter(client, MODEL, Complaints(url))
            return await writer.write() and await writer.take_turn()
        finally:
            await client.aclose()

    gateway = RunningGateway(url, model=MODEL).start()
    try:
        assert asyncio.run(write())
        with gateway.client() as http, http.stream("GET", "/live") as response:
            events = sse_events(response)
            assert [next(events)[0], next(events)[0]] == ["history", "view"]
        assert test.xlen(HISTORY) >= 1
    finally:
        gateway.stop()
    assert test.execute_command("ACL", "LOG") == []  # type: ignore[no-untyped-call]
    test.close()


def test_a_restart_of_redis_loses_no_transaction(tmp_path: Path) -> None:
    """The append-only file is replayed with the rights of the default user, transactions anew checked
    for them (redis#14541, valkey#3983): without any, older servers lose all that our scripts wrote."""
    assert USERS.read_text().startswith("user default off ~* &* +@all\n")
    server = Valkey("--aclfile", str(USERS), appendonly=True, user="gateway", password=_PASSWORD)
    server.start()
    try:
        client = connect(server.url)
        with client.pipeline(transaction=True) as pipe:
            pipe.set("mini-vllm:a", "1")
            pipe.set("mini-vllm:b", "2")
            pipe.execute()
        client.eval("redis.call('SET', KEYS[1], '3') redis.call('SET', KEYS[2], '4')", 2, *_KEYS)
        client.close()
        server.stop()
        server.start()
        client = connect(server.url)
        names = ("mini-vllm:a", "mini-vllm:b", *_KEYS)
        assert [client.get(name) for name in names] == [b"1", b"2", b"3", b"4"]
        client.close()
    finally:
        server.remove()


def make_worker(client: Redis) -> tuple[Intake, Link, Heart]:
    report = WorkerReport(
        name="w", incarnation="w.1", pid=1, host="h", model=MODEL, state=WorkerState.READY
    )
    intake = Intake(
        client,
        model=MODEL,
        incarnation="w.1",
        heartbeat_ttl_s=4,
        result_ttl_s=60,
        on_stop=lambda _: None,
        on_shutdown=lambda: None,
    )
    link = Link(
        client,
        incarnation="w.1",
        model=MODEL,
        slots=4,
        result_ttl_s=60,
        patience=16,
        may_wait=lambda: False,
    )
    heart = Heart(
        client,
        report=lambda: report,
        pulse=Pulse(60),
        interval_s=0.05,
        ttl_s=4,
        sweeper=Sweeper(heartbeat_ttl_s=4, max_deaths=3, result_ttl_s=60),
    )
    return intake, link, heart
