from typing import Any

from api.fleet import WorkerView
from api.mixed_weights import mixed_weights
from shared.protocol import Weights

BF16 = Weights(format="bf16", fingerprint="b" * 16)
Q4_1 = Weights(format="q4_1", fingerprint="a" * 16)


def worker(weights: Weights | None, model: str = "m", state: str = "ready") -> WorkerView:
    facts: dict[str, Any] = {"name": "w", "incarnation": "w.1", "pid": 1, "host": "h"}
    return WorkerView.model_validate(facts | {"model": model, "state": state, "weights": weights})


def test_workers_of_one_model_with_other_weights_are_told_of() -> None:
    (warning,) = mixed_weights([worker(BF16), worker(Q4_1), worker(BF16)])
    assert f"workers of m run different weights (2 x bf16 {'b' * 16}, 1 x q4_1 " in warning


def test_other_models_lost_workers_and_those_that_load_are_no_mixture() -> None:
    workers = [worker(BF16), worker(Q4_1, model="n"), worker(Q4_1, state="lost"), worker(None)]
    assert mixed_weights(workers) == ()


def test_two_files_of_one_format_are_different_weights() -> None:
    other = BF16.model_copy(update={"fingerprint": "c" * 16})
    assert len(mixed_weights([worker(BF16), worker(other)])) == 1
