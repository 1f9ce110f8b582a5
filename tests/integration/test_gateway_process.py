"""``python -m api`` as a process: its port, its ready message, its exit codes."""

import socket
import subprocess

from tests.gateway_process import command, running


def test_it_says_its_port_and_then_answers(valkey_url: str) -> None:
    with running(valkey_url) as gateway, gateway.client() as http:
        body = http.get("/").json()
    assert (body["name"], body["model"]) == ("mini-vllm", "smollm2")


def test_it_bounds_the_head_of_a_request(valkey_url: str) -> None:
    with running(valkey_url) as gateway, gateway.client() as http:
        response = http.get("/", headers={"x": "y" * 32_768})
    assert response.status_code == 431
    assert response.json()["error"]["code"] == "headers_too_large"


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*command(), "--port", port], capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 1
    assert done.stderr == f"cannot listen on 127.0.0.1:{port}: Address already in use\n"


def test_a_bad_setting_names_key_and_value() -> None:
    done = subprocess.run(
        [*command(), "--port", "99999"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 78
    assert "MINI_VLLM_PORT='99999'" in done.stderr
    assert done.stderr.count("\n") == 1
