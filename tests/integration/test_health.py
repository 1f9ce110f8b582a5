"""The health check of containers, against a real gateway."""

import signal
import socket

from cli.health import gateway_problem
from tests.gateway_process import running


def test_a_gateway_that_answers_is_healthy_and_one_that_stands_still_is_not(
    valkey_url: str,
) -> None:
    with running(valkey_url) as gateway:
        port = int(gateway.url.rsplit(":", 1)[1])
        assert gateway_problem(port) is None
        gateway.signal(signal.SIGSTOP)
        assert gateway_problem(port) == f"the gateway at port {port} does not answer: timed out"


def test_a_gateway_that_is_away_is_not_healthy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    problem = gateway_problem(port)
    assert problem is not None
    assert "Connection refused" in problem
