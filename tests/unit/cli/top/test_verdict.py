"""Whether users wait: the worst that is true is told, with its cause and what to do."""

from typing import Any

import pytest

from cli.top.verdict import Verdict, verdict_of
from tests.unit.cli.recorded import point, queue, view, worker

FAILURE = {"name": "worker-2", "host": "node-2", "model": "smollm2", "message": "no room.", "at": 1}


def verdict(*points: dict[str, Any], throttled: float = 0.0, **changes: Any) -> Verdict:
    return verdict_of(view(**changes), points, {"worker-0.8f3a": throttled})


def test_all_is_well_while_nobody_waits() -> None:
    assert verdict().level == "good"
    assert verdict().text == "All is well: nobody waits. 2 workers ready, 4 of 16 slots used."


@pytest.mark.parametrize(
    ("workers", "failures", "level", "words"),
    [
        ([], [], "bad", "Users wait: there is no worker."),
        ([], [FAILURE], "bad", "Users wait: no worker can start. worker-2 said: no room."),
        ([worker(state="loading")], [FAILURE], "busy", "loading the model"),
        ([worker(state="waiting")], [], "bad", "Users wait: the workers wait for free cores."),
        ([worker(state="lost"), worker(state="draining")], [], "bad", "all are lost and draining"),
    ],
)
def test_without_a_ready_worker_users_wait_whatever_is_queued(
    workers: list[Any], failures: list[Any], level: str, words: str
) -> None:
    found = verdict(workers=workers, failures=failures)
    assert (found.level, bool(found.action)) == (level, True)
    assert words in found.text


def test_a_long_queue_says_how_long_and_that_the_slots_are_used() -> None:
    full = [worker(slots_used=8)]
    found = verdict(workers=full, queue=queue(normal=(1200, 8.4)))
    assert found.level == "bad"
    assert found.text == "Users wait about 8 s: 1,200 jobs in the queue: all 8 slots are used."
    assert "Add workers" in found.action


def test_the_cause_of_a_long_queue_is_told_where_it_is_known() -> None:
    queued = queue(normal=(5, 30.0))
    assert (
        "worker-2 fails to start: no room. Fix" in verdict(queue=queued, failures=[FAILURE]).action
    )
    assert "holds worker-0 back (40 % of" in verdict(queue=queued, throttled=0.4).action


def test_a_wait_that_is_not_known_is_a_wait() -> None:
    assert verdict(queue=queue(normal=(1, None))).text.startswith("Users wait: 1 job in the queue")


def test_a_short_queue_and_batches_are_no_trouble() -> None:
    assert verdict(queue=queue(high=(2, 1.2))).text.startswith("Nobody waits long: 2 jobs")
    batch = verdict(queue=queue(low=(40, 300.0)))
    assert (batch.level, batch.text.startswith("All is well: nobody waits but 40 jobs")) == (
        "good",
        True,
    )


def test_suspects_are_told_and_hide_no_queue() -> None:
    assert "workers died of" in verdict(queue=queue(suspect=(1, None))).text
    both = verdict(queue=queue(suspect=(1, None), normal=(9, 60.0)))
    assert both.text.startswith("Users wait about 60 s")


def test_one_who_sees_no_workers_is_told_of_the_queue() -> None:
    own: dict[str, Any] = {"workers": None, "failures": None, "warnings": None}
    assert verdict(**own).text == "All is well: nobody waits."
    found = verdict(**own, queue=queue(normal=(9, 600.0)))
    assert found.text == "Users wait about 10 minutes: 9 jobs in the queue."
    assert "Ask for less" in found.action


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workers": [worker("w", state="lost"), worker()]}, "w no longer answers"),
        ({"workers": [worker(kv_usage=0.97)]}, "KV cache of worker-0 is 97 % full"),
        ({"warnings": ["workers of smollm2 differ"]}, "Nobody waits, but: workers of smollm2"),
    ],
)
def test_what_is_not_as_it_should_be_is_told_while_nobody_waits(
    changes: dict[str, Any], words: str
) -> None:
    found = verdict(**changes)
    assert found.level == "busy"
    assert words in found.text


def test_throttling_is_told() -> None:
    assert verdict(throttled=0.09).level == "good"
    assert "CPU quota holds worker-0 back (25 %" in verdict(throttled=0.25).text


def test_failures_of_the_last_minute_count_and_older_ones_do_not() -> None:
    failing = {"errors_per_s": 0.5, "requests_per_s": 2.0}
    assert "25 % failed" in verdict(point(10, **failing)).text
    assert verdict(point(500, **failing)).level == "good"
    assert verdict(point(10, errors_per_s=0.01)).level == "good"
