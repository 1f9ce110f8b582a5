"""What a connection may send, over real sockets: sizes, times, and the room for all bodies."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from redis import Redis

from tests.gateway import RunningGateway
from tests.raw import RawConnection
from tests.servers import wait_for

MAX_HEADER_BYTES = 4096
LONG_S = 60.0  #: what a test does not wait for
SHORT_S = 1.0  #: what it does wait for, and still long for what has to come before


@contextmanager
def running(valkey_url: str, **settings: object) -> Iterator[RunningGateway]:
    bounds: dict[str, object] = {
        "max_header_bytes": MAX_HEADER_BYTES,
        "max_body_bytes": 4096,
        "header_timeout_s": LONG_S,
        "body_timeout_s": LONG_S,
    }
    gateway = RunningGateway(valkey_url, **(bounds | settings))
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.stop()


@pytest.fixture
def bounded(valkey_url: str, flushed: Redis) -> Iterator[RunningGateway]:
    with running(valkey_url) as gateway:
        yield gateway


def head_of(num_bytes: int) -> bytes:
    """A request for /health of this size."""
    begin = b"GET /health HTTP/1.1\r\nhost: x\r\nx-padding: "
    return begin + b"p" * (num_bytes - len(begin) - 4) + b"\r\n\r\n"


def post(body: bytes, announced: int | None = None) -> bytes:
    num_bytes = len(body) if announced is None else announced
    return b"POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % num_bytes + body


HEALTH = head_of(100)
CHUNKED = b"POST /generate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


def test_headers_up_to_their_limit_pass_and_the_connection_stays(bounded: RunningGateway) -> None:
    with RawConnection(bounded.url) as raw:
        for _ in range(3):
            raw.send(head_of(MAX_HEADER_BYTES))
            assert raw.answer() == (200, {"status": "alive"})


def test_a_body_that_comes_with_its_head_is_none_of_it(valkey_url: str, flushed: Redis) -> None:
    body = b'{"prompt": "' + b"x" * 100_000 + b'"}'
    with (
        running(valkey_url, max_body_bytes=200_000) as gateway,
        RawConnection(gateway.url) as raw,
    ):
        for _ in range(3):
            raw.send(post(body))
            assert raw.answer()[0] == 202


def test_one_byte_more_is_refused_by_name(bounded: RunningGateway) -> None:
    with RawConnection(bounded.url) as raw:
        raw.send(head_of(MAX_HEADER_BYTES + 1))
        status, body = raw.answer()
        assert (status, body["error"]["code"]) == (431, "headers_too_large")
        assert f"{MAX_HEADER_BYTES} bytes" in body["error"]["message"]
        assert set(body["error"]) == {"code", "message", "field", "details"}
        assert raw.is_closed()


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"GET /health HTTP/1.1\r\nx: ", b"y" * 1000),
        (b"GET /health HTTP/1.1\r\n", b"y" * 1000),
        (b"GET /", b"y" * 1000),
        (b"GET /health HTTP/1.1\r\n", b"a: b\r\n" * 100),
        (b"", b"\r\n" * 500),
        (HEALTH + b"GET /health HTTP/1.1\r\nx: ", b"y" * 1000),
        (CHUNKED + b"0\r\nx: ", b"y" * 1000),
        (CHUNKED + b"0\r\n", b"a: b\r\n" * 100),
        (CHUNKED + b"5;", b"y" * 1000),
    ],
    ids=[
        "value",
        "name",
        "path",
        "many",
        "empty lines",
        "of a second request",
        "trailer",
        "many trailers",
        "extension of a chunk",
    ],
)
def test_a_head_without_an_end_is_cut(bounded: RunningGateway, begin: bytes, piece: bytes) -> None:
    with RawConnection(bounded.url) as raw:
        raw.send(begin)
        if begin.startswith(HEALTH):
            assert raw.answer()[0] == 200
        raw.send_for_ever(piece)
        status, body = raw.answer()
        assert (status, body["error"]["code"]) == (431, "headers_too_large")
        assert raw.is_closed()


def test_a_prompt_beyond_its_setting_is_refused_and_not_queued(
    valkey_url: str, flushed: Redis
) -> None:
    with running(valkey_url, max_prompt_chars=10) as gateway, gateway.client() as http:
        response = http.post("/generate", json={"prompt": "x" * 11})
        assert response.status_code == 422
        error = response.json()["error"]
        assert error["field"] == "prompt"
        assert error["message"] == "prompt: must have at most 10 characters (has 11)"
        assert http.get("/jobs").json()["jobs"] == []
        assert http.post("/generate", json={"prompt": "x" * 10}).status_code == 202


def test_what_is_not_http_is_refused_in_shape(bounded: RunningGateway) -> None:
    with RawConnection(bounded.url) as raw:
        raw.send(b"\x16\x03\x01 hello\r\n\r\n")
        status, body = raw.answer()
        assert (status, body["error"]["code"]) == (400, "invalid_request")
        assert raw.is_closed()


def test_requests_that_come_together_are_answered_in_turn(bounded: RunningGateway) -> None:
    with RawConnection(bounded.url) as raw:
        raw.send(HEALTH * 2 + post(b'{"prompt": "x"}') + HEALTH)
        assert [raw.answer()[0] for _ in range(4)] == [200, 200, 202, 200]


def test_a_head_too_large_waits_for_the_answer_before_it(bounded: RunningGateway) -> None:
    with bounded.client() as http, RawConnection(bounded.url) as raw:
        job_id = http.post("/generate", json={"prompt": "x"}).json()["job_id"]
        raw.send(b"GET /jobs/%s?wait_s=0.3 HTTP/1.1\r\nhost: x\r\n\r\n" % job_id.encode())
        raw.send(head_of(MAX_HEADER_BYTES * 2))
        status, body = raw.answer()
        assert (status, body["job_id"]) == (200, job_id)
        assert raw.is_closed()


@pytest.mark.parametrize("begin", [b"", b"GET /health HTTP/1.1\r\nx: ", HEALTH + b"GET", b"\r\n"])
def test_a_head_that_takes_too_long_is_cut(valkey_url: str, begin: bytes) -> None:
    with (
        running(valkey_url, header_timeout_s=SHORT_S) as gateway,
        RawConnection(gateway.url) as raw,
    ):
        raw.send(begin)
        if begin.startswith(HEALTH):
            assert raw.answer()[0] == 200
        assert raw.is_closed()


def test_a_byte_now_and_then_does_not_prolong_a_head(valkey_url: str) -> None:
    with (
        running(valkey_url, header_timeout_s=SHORT_S) as gateway,
        RawConnection(gateway.url) as raw,
    ):
        raw.send(b"GET /health HTTP/1.1\r\nx: ")
        _send_until_closed(raw, b"y")


def test_half_a_head_does_not_cut_the_answer_before_it(valkey_url: str, flushed: Redis) -> None:
    with running(valkey_url, header_timeout_s=SHORT_S) as gateway:
        with gateway.client() as http:
            job_id = http.post("/generate", json={"prompt": "x"}).json()["job_id"]
        with RawConnection(gateway.url) as raw:
            path = f"/jobs/{job_id}?wait_s={2.5 * SHORT_S}"
            raw.send(b"GET %s HTTP/1.1\r\nhost: x\r\n\r\nGET /he" % path.encode())
            assert raw.answer()[0] == 200
            assert raw.is_closed()


def test_a_connection_at_rest_is_no_slow_head(valkey_url: str) -> None:
    with (
        running(valkey_url, header_timeout_s=SHORT_S) as gateway,
        RawConnection(gateway.url) as raw,
    ):
        for _ in range(2):
            raw.send(HEALTH)
            assert raw.answer()[0] == 200
            time.sleep(1.5 * SHORT_S)
        raw.send(HEALTH)
        assert raw.answer()[0] == 200


def test_a_body_that_stalls_is_refused_and_its_connection_closed(valkey_url: str) -> None:
    with running(valkey_url, body_timeout_s=0.2) as gateway, RawConnection(gateway.url) as raw:
        raw.send(post(b'{"prompt": ', announced=100))
        status, body = raw.answer()
        assert (status, body["error"]["code"]) == (408, "body_timeout")
        assert raw.is_closed()
        assert gateway.held_body_bytes == 0


def test_a_refused_body_is_thrown_away_and_the_connection_stays(bounded: RunningGateway) -> None:
    with RawConnection(bounded.url) as raw:
        raw.send(post(b" " * 3_000_000))
        assert raw.answer()[0] == 413
        raw.send(HEALTH)
        assert raw.answer()[0] == 200


def test_a_refused_body_does_not_come_for_ever(valkey_url: str) -> None:
    with running(valkey_url, body_timeout_s=0.3) as gateway, RawConnection(gateway.url) as raw:
        raw.send(post(b"", announced=1_000_000))
        assert raw.answer()[0] == 413
        _send_until_closed(raw, b" ")


def _send_until_closed(raw: RawConnection, piece: bytes) -> None:
    def is_cut() -> bool:
        try:
            raw.send(piece)
        except (BrokenPipeError, ConnectionResetError):
            return True
        return raw.has_something_to_read() and raw.is_closed()

    wait_for(is_cut, "the gateway closes the connection")


MIB = 1_048_576
NUM_FLOODING = 400
NUM_ROUNDS = 4


def test_a_flood_of_bodies_that_stall_holds_no_more_than_its_budget(
    valkey_url: str, flushed: Redis
) -> None:
    budget_bytes = 8 * MIB
    piece = b" " * 230_000
    with (
        running(valkey_url, max_body_bytes=MIB, max_inflight_body_bytes=budget_bytes) as gateway,
        gateway.client() as http,
        ExitStack() as flood,
    ):
        flooding = [flood.enter_context(RawConnection(gateway.url)) for _ in range(NUM_FLOODING)]
        held: list[int] = []
        for raw in flooding:
            raw.send(post(b"", announced=MIB))
        for _ in range(NUM_ROUNDS):
            for raw in flooding:
                raw.send(piece)
                held.append(gateway.held_body_bytes)
            assert http.get("/health").status_code == 200

        def all_is_held_or_refused() -> bool:
            num_held = sum(not raw.has_something_to_read() for raw in flooding)
            return gateway.held_body_bytes == num_held * NUM_ROUNDS * len(piece)

        wait_for(all_is_held_or_refused, "each body is held or refused")
        refused = [raw for raw in flooding if raw.has_something_to_read()]
        assert 0 < max(held) <= budget_bytes
        assert NUM_FLOODING - len(refused) <= budget_bytes // (NUM_ROUNDS * len(piece))
        for raw in refused:
            status, body = raw.answer()
            assert (status, body["error"]["code"]) == (503, "overloaded")
        assert http.get("/health").status_code == 200
        flood.close()
        wait_for(lambda: gateway.held_body_bytes == 0, "all is given back")
        assert http.post("/generate", json={"prompt": "x"}).status_code == 202
