"""Log probabilities of tokens, from the logits as the model gave them: pure numpy."""

import numpy as np
from numpy.typing import NDArray


class Likelihood:
    """Taken before anything changes the logits: temperature, penalties, biases and grammar come later."""

    def __init__(self, logits: NDArray[np.float32], num_top: int) -> None:
        highest = logits.max()
        # Summed in double: 50,000 small terms would lose digits.
        self._total = float(highest) + float(np.log(np.exp(logits - highest).sum(dtype=np.float64)))
        self._logits = logits
        self.top: list[tuple[int, float]] = []  #: token and log probability, best first
        if num_top:
            likeliest = np.argpartition(logits, -num_top)[-num_top:]
            # Equal ones in the order of their ids, so that it is the same each time.
            order = sorted(likeliest.tolist(), key=lambda token: (-logits[token], token))
            self.top = [(token, self.of(token)) for token in order]

    def of(self, token: int) -> float:
        """The token must still have its logit."""
        return round(float(self._logits[token]) - self._total, 6)
