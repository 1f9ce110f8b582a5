import math

import numpy as np
import pytest
from numpy.typing import NDArray

from cli.divergence import Divergence


def logits(*rows: list[float]) -> NDArray[np.float32]:
    """Of these probabilities, shifted: only differences count."""
    with np.errstate(divide="ignore"):
        shifted: NDArray[np.float64] = np.log(np.array(rows)) + 3
    return shifted.astype(np.float32)


def test_perplexity_is_the_inverse_of_the_geometric_mean_of_the_probabilities() -> None:
    found = Divergence()
    found.add(logits([0.5, 0.25, 0.25]), logits([0.8, 0.1, 0.1]), [0])
    found.add(logits([0.5, 0.25, 0.25]), logits([0.8, 0.1, 0.1]), [1])
    figures = found.figures()
    assert figures.tokens == 2
    assert figures.perplexity_a == pytest.approx(1 / math.sqrt(0.5 * 0.25))
    assert figures.perplexity_b == pytest.approx(1 / math.sqrt(0.8 * 0.1))


def test_the_divergence_is_the_expected_loss_of_b_where_a_is_right() -> None:
    found = Divergence()
    found.add(logits([0.75, 0.25]), logits([0.5, 0.5]), [0])
    expected = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    assert found.figures().kl_mean == pytest.approx(expected, rel=1e-5)
    assert found.figures().kl_max == pytest.approx(expected, rel=1e-5)


def test_equal_models_do_not_diverge_and_always_agree() -> None:
    same = logits([0.7, 0.2, 0.1], [0.1, 0.2, 0.7])
    found = Divergence()
    found.add(same, same, [0, 2])
    figures = found.figures()
    assert (figures.kl_mean, figures.kl_p99, figures.top_agreement) == (0, 0, 1)
    assert figures.perplexity_a == figures.perplexity_b


def test_the_share_of_agreement_counts_the_likeliest_tokens() -> None:
    found = Divergence()
    found.add(logits([0.6, 0.4], [0.6, 0.4]), logits([0.9, 0.1], [0.3, 0.7]), [1, 1])
    assert found.figures().top_agreement == 0.5


def test_a_token_that_a_never_gives_adds_nothing() -> None:
    found = Divergence()
    found.add(logits([1.0, 0.0]), logits([0.5, 0.5]), [0])
    assert found.figures().kl_mean == pytest.approx(math.log(2), rel=1e-5)


def test_large_logits_do_not_overflow() -> None:
    found = Divergence()
    large = np.array([[1e4, 0.0]], dtype=np.float32)
    found.add(large, large, [0])
    assert found.figures().perplexity_a == 1


def test_nothing_has_no_figures() -> None:
    with pytest.raises(ValueError, match="nothing"):
        Divergence().figures()
