import math

import numpy as np
import pytest

from worker.backends.likelihood import Likelihood


def test_probabilities_add_up_to_one() -> None:
    logits = np.random.default_rng(1).normal(0, 5, 1000).astype(np.float32)
    likelihood = Likelihood(logits, 0)
    assert sum(math.exp(likelihood.of(t)) for t in range(1000)) == pytest.approx(1, abs=1e-4)
    assert likelihood.top == []


def test_the_likeliest_come_first_and_equal_ones_by_their_ids() -> None:
    logits = np.array([0, 3, 1, 3, -np.inf], dtype=np.float32)
    top = Likelihood(logits, 3).top
    assert [token for token, _ in top] == [1, 3, 2]
    assert (
        top[0][1]
        == top[1][1]
        == pytest.approx(-math.log(2 + math.exp(-2) + math.exp(-3)), abs=1e-5)
    )


def test_what_is_masked_later_does_not_change_it() -> None:
    logits = np.array([1, 2, 3], dtype=np.float32)
    likelihood = Likelihood(logits, 1)
    expected = likelihood.of(0)
    logits[2] = -np.inf
    assert likelihood.of(0) == expected
