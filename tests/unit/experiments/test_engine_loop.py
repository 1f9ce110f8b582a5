"""How repeats are told."""

import json

from experiments.engine_loop import Spread, spread_of, summarize, to_json
from experiments.loop_redis import RedisCost
from experiments.loop_steps import StepCost
from experiments.redis_traffic import Traffic


def test_repeats_are_told_by_median_and_both_ends() -> None:
    assert spread_of([3.0, 1.0, 20.0]) == Spread(3.0, 1.0, 20.0)
    assert str(spread_of([3.0, 1.0, 2000.4])) == "3 (1-2000)"
    assert str(spread_of([0.03125, 0.03125])) == "0.031"


def test_steps_are_summarized_by_figure_and_shared_among_their_sequences() -> None:
    costs = [
        StepCost(4, us, 8.0, {"plan": us / 10, "commit": 1, "detokenize": 1}) for us in (20, 40)
    ]
    found = summarize(costs)
    assert found["step_us"] == Spread(30, 20, 40)
    assert found["plan_us"] == Spread(3, 2, 4)
    assert found["per_token_us"] == Spread(9.5, 7, 12)


def test_a_row_becomes_json_all_the_way_down() -> None:
    cost = RedisCost(
        Traffic({"xadd": 1, "evalsha": 0.5}, 100, 2), Traffic({"hset": 9}, 5, 6), 700, 300
    )
    row = {"sequences": 2, "redis": summarize([cost]), "token_commands": dict(cost.token.commands)}
    (plain,) = json.loads(json.dumps(to_json([row])))
    assert plain["redis"]["script_calls_per_token"]["median"] == 0.5
    assert plain["redis"]["commands_per_token"]["median"] == 1.5
    assert plain["redis"]["bytes_per_job"]["largest"] == 11
    assert plain["token_commands"] == {"xadd": 1, "evalsha": 0.5}
