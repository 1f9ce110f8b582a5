"""Loads on a client that the test plays."""

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from cli.bench import run
from cli.bench.answers import Answer, Seen
from cli.bench.asks import Ask
from cli.bench.client import Client
from cli.bench.load import run_load
from cli.bench.measured import Measured
from cli.bench.options import Given, make_plan
from cli.bench.plan import Plan
from cli.bench.verdicts import judge
from cli.bench.watch import Watch
from shared.errors import SetupError

Play = Callable[[Ask, Answer], None]


class Played:
    server = SimpleNamespace(name="played", url="http://played")

    def __init__(self, play: Play) -> None:
        self._play = play

    async def send(self, ask: Ask, answer: Answer) -> None:
        await asyncio.sleep(0)
        self._play(ask, answer)


def plan(**given: object) -> Plan:
    return make_plan(Given(url=["http://played"], compare=[], **given))  # type: ignore[arg-type]


def seen_of(plan: Plan, play: Play) -> Seen:
    seen = Seen(time.monotonic())
    load = plan.load(plan.points[0], 1, plan.lengths)
    asyncio.run(run_load(cast(Client, Played(play)), load, seen))
    return seen


def gone(_: Ask, answer: Answer) -> None:
    answer.fail("connection refused", "nobody is there", time.monotonic())


def good(ask: Ask, answer: Answer) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": ask.output_tokens}
    answer.feed({"choices": [{"text": "a"}], "usage": usage}, time.monotonic())


def test_a_server_that_is_gone_is_not_asked_again_and_again() -> None:
    seen = seen_of(plan(concurrency="4", duration="0.5s"), gone)
    assert 4 <= len(seen.answers) <= 4 * 4


def test_all_requests_of_a_number_are_sent_to_it() -> None:
    assert len(seen_of(plan(concurrency="4", requests=100), gone).answers) == 100


def test_arrivals_of_a_time_are_within_it() -> None:
    made = plan(rate="25", duration="0.31s")
    load = made.load(made.points[0], 1, made.lengths)
    assert len(load.arrivals_s) == 7
    assert load.arrivals_s[-1] <= 0.31


def test_no_turn_of_a_chat_begins_after_the_time() -> None:
    def slow(ask: Ask, answer: Answer) -> None:
        time.sleep(0.15)
        good(ask, answer)

    seen = seen_of(plan(workload="chat", rate="10", duration="0.1s", turns=50), slow)
    assert len(seen.answers) == 1


def test_a_load_that_cannot_go_on_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def drive(plan: Plan, measured: Measured, _: Watch) -> None:
        if len(plan.points) > 1:
            measured.add(plan.points[0], "played", 1, seen_of_good)
        raise SetupError("2 of 2 streams stand still")

    seen_of_good = seen_of(plan(concurrency="1", requests=2), good)
    monkeypatch.setattr(run, "_drive", drive)
    measured = run.measure(plan(concurrency="1,2"))
    assert measured.total("played", "completed") == 2
    assert "2 of 2 streams stand still" in judge(measured)[-1].text
    with pytest.raises(SetupError, match="stand still"):
        run.measure(plan(concurrency="1"))
