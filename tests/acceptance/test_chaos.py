"""Processes die in the middle of a crowd: every client still hears the text of an undisturbed run.

When a fault strikes, and whom, is drawn; `CHAOS_SEED` repeats a draw.
"""

import signal
from collections.abc import Iterator
from random import Random
from typing import Any

import httpx
import pytest

from tests.acceptance.undisturbed import undisturbed_crowd, undisturbed_texts, wait_for_moment
from tests.acceptance.victims import (
    gateway_pid,
    has_ended,
    holder_of,
    stop_in_order,
    strike,
    wait_for_workers,
    wait_until_gone,
)
from tests.service import Up, wait_until

pytestmark = pytest.mark.model

POISON: dict[str, Any] = {"prompt": "Never stop", "max_tokens": 400, "ignore_eos": True, "seed": 5}


@pytest.fixture(scope="module")
def shared_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("up"), "--workers", "2", "--threads", "1")
    try:
        undisturbed_texts(up.wait_ready())
        yield up
        stop_in_order(up)
    finally:
        up.stop()


@pytest.fixture
def up(shared_up: Up) -> Up:
    """Whole again: what died in a test was started anew."""
    wait_for_workers(shared_up)
    return shared_up


def test_a_killed_worker_goes_unnoticed(up: Up, chance: Random) -> None:
    pid = chance.choice(wait_for_workers(up))
    with undisturbed_crowd(up) as crowd:
        wait_for_moment(crowd, chance)
        strike(pid, signal.SIGKILL)
        wait_until_gone(pid)


def test_a_worker_that_is_killed_while_it_resumes_a_job_goes_unnoticed(
    up: Up, chance: Random
) -> None:
    with undisturbed_crowd(up) as crowd:
        wait_for_moment(crowd, chance, each=1, latest=200)
        longest = crowd.clients[-1]  # it is far from its end on whichever worker
        for attempt in (1, 2):
            strike(_pid_of_attempt(up, longest.job_id, attempt), signal.SIGKILL)
    assert crowd.attempts[-1] == 3


def _pid_of_attempt(up: Up, job_id: str, attempt: int) -> int:
    def find() -> int | None:
        holder = holder_of(up, job_id)
        return holder[1] if holder and holder[0] == attempt else None

    pid: int = wait_until(find, 60, f"attempt {attempt} of the job runs")
    return pid


def test_a_worker_that_stands_still_goes_unnoticed_and_ends(up: Up, chance: Random) -> None:
    pid = chance.choice(wait_for_workers(up))
    with undisturbed_crowd(up) as crowd:
        wait_for_moment(crowd, chance)
        strike(pid, signal.SIGSTOP)
    strike(pid, signal.SIGCONT)
    wait_until_gone(pid)


def test_a_worker_that_is_told_to_stop_goes_unnoticed_and_is_replaced(
    up: Up, chance: Random
) -> None:
    pid = chance.choice(wait_for_workers(up))
    with undisturbed_crowd(up) as crowd:
        wait_for_moment(crowd, chance)
        strike(pid, signal.SIGTERM)
        wait_until_gone(pid)
    assert pid not in wait_for_workers(up)


def test_clients_of_a_killed_gateway_resume_with_the_next_one(up: Up, chance: Random) -> None:
    pid = gateway_pid(up)
    with undisturbed_crowd(up) as crowd:
        wait_for_moment(crowd, chance)
        strike(pid, signal.SIGKILL)
        wait_until_gone(pid)
    assert set(crowd.attempts) == {1}


def test_clients_of_a_gateway_that_is_told_to_stop_resume_with_the_next_one(
    up: Up, chance: Random
) -> None:
    pid = gateway_pid(up)
    with undisturbed_crowd(up) as crowd:
        wait_for_moment(crowd, chance)
        strike(pid, signal.SIGTERM)
        wait_until_gone(pid)
    assert set(crowd.attempts) == {1}


def test_a_job_that_kills_its_workers_fails_alone(up: Up, chance: Random) -> None:
    with undisturbed_crowd(up) as crowd:
        wait_for_moment(crowd, chance)
        poison = httpx.post(up.url + "/generate", json=POISON).json()["job_id"]
        last_attempt = _kill_whoever_runs(up, poison)
    end = crowd.ends[poison]
    assert end.error is not None
    assert (end.status, end.error.code) == ("failed", "worker_lost")
    assert end.attempts == last_attempt > 1


def _kill_whoever_runs(up: Up, job_id: str) -> int:
    """Until the job has ended; the attempt that was killed last."""
    killed = 0

    def runs_again_or_has_ended() -> tuple[int, int] | bool:
        holder = holder_of(up, job_id)
        return holder if holder and holder[0] > killed else has_ended(up, job_id)

    while True:
        found = wait_until(runs_again_or_has_ended, 90, "the job runs again, or has ended")
        if found is True:
            return killed
        killed, pid = found
        strike(pid, signal.SIGKILL)
