"""What cannot work is said in one line that names what to set."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.compose.project import PASSWORD, Project, inspect
from tests.service import wait_until

Make = Callable[..., Project]


def _says(project: Project, service: str, *texts: str) -> str:
    def said() -> str | None:
        return next(
            (x for x in project.logs(service).splitlines() if all(t in x for t in texts)), None
        )

    line: str = wait_until(said, 90, f"{service} says {texts}")
    assert "Traceback" not in project.logs(service)
    return line


def _exit_codes(project: Project, service: str) -> set[int]:
    states = [inspect(c)["State"] for c in project.containers(service, also_stopped=True)]
    # One that waits to be restarted counts as running.
    return {s["ExitCode"] for s in states if s["Restarting"] or not s["Running"]}


def test_no_one_is_published_beyond_loopback_without_a_key(make_project: Make) -> None:
    project = make_project(MINI_VLLM_PUBLISH="0.0.0.0")
    project.run("up", "--detach", "gateway")
    _says(project, "gateway", "MINI_VLLM_PUBLISH='0.0.0.0'", "set MINI_VLLM_API_KEYS")
    wait_until(lambda: _exit_codes(project, "gateway") == {78}, 60, "the gateway exits with 78")
    project.settings(MINI_VLLM_API_KEYS="some-key-of-a-user", MINI_VLLM_ADMIN_KEYS="some-admin-key")
    project.run("up", "--detach", "gateway")
    wait_until(lambda: project.get("/health"), 60, "with a key it starts")
    answer = project.get("/jobs")
    assert answer
    assert answer.status_code == 401


def test_a_file_of_keys_that_is_not_there_is_named(make_project: Make) -> None:
    project = make_project(MINI_VLLM_API_KEYS_FILE="/keys/users")
    project.run("up", "--detach", "gateway")
    _says(project, "gateway", "MINI_VLLM_API_KEYS_FILE", "/keys/users")
    wait_until(lambda: _exit_codes(project, "gateway") == {78}, 60, "the gateway exits with 78")


@pytest.mark.parametrize("size", ["3gb", "1 gb", "0"])
def test_a_size_that_redis_cannot_have_is_named(make_project: Make, size: str) -> None:
    project = make_project(REDIS_MAXMEMORY=size)
    project.run("up", "--detach", "--no-deps", "redis")
    _says(project, "redis", f"error: REDIS_MAXMEMORY={size}")
    wait_until(lambda: _exit_codes(project, "redis") == {78}, 60, "Redis exits with 78")


@pytest.mark.parametrize(
    ("settings", "texts"),
    [
        ({"MINI_VLLM_MODEL": "/models/none.gguf"}, ["no model '/models/none.gguf'"]),
        (
            {"WORKER_MEMORY_LIMIT": "300m", "MINI_VLLM_CONTEXT_TOKENS": "4096"},
            ["MINI_VLLM_CONTEXT_TOKENS", "MINI_VLLM_SLOTS", "needs"],
        ),
    ],
)
def test_a_worker_that_cannot_start_says_why_and_ready_names_it(
    make_project: Make, settings: dict[str, str], texts: list[str]
) -> None:
    project = make_project(WORKERS="1", **settings)
    project.run("up", "--detach")
    _says(project, "worker", "error:", *texts)
    wait_until(lambda: _exit_codes(project, "worker") == {78}, 60, "the worker exits with 78")
    said: Any = wait_until(lambda: project.get("/ready"), 30, "/ready answers")
    assert said.status_code == 503
    message = wait_until(
        lambda: _message_with(project, texts), 30, f"/ready names it (it said {said.text})"
    )
    assert "failed" in message


def _message_with(project: Project, texts: list[str]) -> str | None:
    answer = project.get("/ready")
    message = str(answer.json()["error"]["message"]) if answer else ""
    return message if all(text in message for text in texts) else None


def test_a_wrong_password_is_said_by_both(make_project: Make) -> None:
    project = make_project(WORKERS="1")
    project.run("up", "--detach", "redis")
    project.settings(REDIS_PASSWORD="another")
    project.run("up", "--detach", "--no-deps", "gateway")
    project.run("run", "--rm", "--no-deps", "model")
    project.run("up", "--detach", "--no-deps", "worker")
    line = _says(project, "worker", "refuses", "MINI_VLLM_REDIS_PASSWORD")
    assert "another" not in line
    assert PASSWORD not in line
    wait_until(lambda: _exit_codes(project, "worker") == {78}, 60, "the worker exits with 78")
    wait_until(lambda: project.get("/health"), 60, "the gateway lives")
    message = wait_until(lambda: _message_with(project, ["refuses"]), 30, "/ready says so")
    assert "another" not in message
