"""What Redis counted, and whose it is."""

import pytest

from experiments.redis_traffic import Traffic, cost_of_tokens


def info(received: int, sent: int, **calls: int) -> dict[str, object]:
    stats: dict[str, object] = {f"cmdstat_{k}": {"calls": v, "usec": 9} for k, v in calls.items()}
    totals = {"total_net_input_bytes": received, "total_net_output_bytes": sent}
    return stats | totals | {"uptime_in_seconds": 5}


def test_a_look_has_the_commands_and_bytes_and_nothing_else() -> None:
    seen = Traffic.from_info(info(10, 20, xadd=3, evalsha=2))
    assert seen == Traffic({"xadd": 3, "evalsha": 2}, 10, 20)
    assert (seen.num_commands, seen.num_script_calls) == (5, 2)


def test_between_two_looks_only_what_was_called_meanwhile_is_named() -> None:
    before = Traffic.from_info(info(10, 20, xadd=3, get=1))
    after = Traffic.from_info(info(110, 25, xadd=7, get=1, hset=2))
    assert after - before == Traffic({"hset": 2, "xadd": 4}, 100, 5)


def test_what_does_not_grow_with_tokens_is_the_jobs() -> None:
    def run(jobs: int, tokens: int) -> Traffic:
        """5 commands and 300 bytes a job, 2 and 40 a token; a look costs 60 bytes and a command."""
        calls = {"hset": 5.0 * jobs, "xadd": 2.0 * jobs * tokens, "info": 1.0}
        return Traffic(calls, jobs * (300 + 40 * tokens) + 60, jobs * tokens)

    token, job = cost_of_tokens(run(4, 16), run(4, 64), jobs=4, short_tokens=16, long_tokens=64)
    assert token == Traffic({"xadd": 2}, 40, 1)
    assert (job.received_bytes, job.sent_bytes) == (315, 0)
    assert {name: calls for name, calls in job.commands.items() if calls} == {
        "hset": 5,
        "info": 0.25,
    }


def test_a_command_of_long_runs_alone_is_the_tokens() -> None:
    short, long = Traffic({}, 0, 0), Traffic({"xtrim": 8}, 0, 0)
    token, job = cost_of_tokens(short, long, jobs=2, short_tokens=2, long_tokens=4)
    assert token.commands == {"xtrim": 2}
    assert job.commands["xtrim"] == pytest.approx(-4)  # as if it had been there from the start
