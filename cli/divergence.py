"""How far one model's predictions of a text are from another's. Pure numpy.

Perplexity is how surprised a model is by the text itself; the KL divergence is what B's predictions lose of
A's, whatever the text says, and shows small damage that perplexity hides.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Figures:
    """``kl_*`` in nats per token; ``top_agreement`` is the share of places where both would choose the
    same token."""

    tokens: int
    perplexity_a: float
    perplexity_b: float
    kl_mean: float
    kl_p99: float
    kl_max: float
    top_agreement: float


@dataclass(slots=True)
class Divergence:
    """Collects what two models say of the same places."""

    _loss_a: float = 0.0
    _loss_b: float = 0.0
    _num_agreed: int = 0
    _kl: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, logits_a: Logits, logits_b: Logits, followed_by: list[int]) -> None:
        """One row of logits for each token that the text has next."""
        log_a, log_b = log_softmax(logits_a), log_softmax(logits_b)
        rows = np.arange(len(followed_by))
        self._loss_a -= float(log_a[rows, followed_by].sum())
        self._loss_b -= float(log_b[rows, followed_by].sum())
        self._num_agreed += int((log_a.argmax(axis=1) == log_b.argmax(axis=1)).sum())
        self._kl.append(kl_divergence(log_a, log_b))

    def figures(self) -> Figures:
        """Raises ``ValueError`` if nothing was added."""
        if not self._kl:
            raise ValueError("there is nothing to compare")
        kl = np.concatenate(self._kl)
        return Figures(
            tokens=len(kl),
            perplexity_a=float(np.exp(self._loss_a / len(kl))),
            perplexity_b=float(np.exp(self._loss_b / len(kl))),
            kl_mean=float(kl.mean()),
            kl_p99=float(np.quantile(kl, 0.99)),
            kl_max=float(kl.max()),
            top_agreement=self._num_agreed / len(kl),
        )


def log_softmax(logits: Logits) -> NDArray[np.float64]:
    """Of each row. In double: 50,000 small terms would lose digits."""
    shifted: NDArray[np.float64] = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return shifted


def kl_divergence(log_a: NDArray[np.float64], log_b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of B against A, for each row; rounding makes equal ones no less than 0."""
    p = np.exp(log_a)
    # A token that A never gives adds nothing, whatever B thinks of it.
    terms = np.where(p > 0, p * (np.where(p > 0, log_a, 0) - log_b), 0)
    per_row: NDArray[np.float64] = np.maximum(terms.sum(axis=1), 0)
    return per_row
