"""Texts of drawn words. Pure.

The words are one token each in the usual vocabularies, a space before them included; how many a
server's own tokenizer makes of them is measured (cli/bench/calibration.py).
"""

import random
from dataclasses import dataclass

_TEXT = """
river stone cloud lantern harbour meadow winter engine paper silver garden bridge mountain forest
island ocean window kitchen table music doctor teacher student market village castle summer spring
autumn morning evening night story letter number colour water fire earth metal glass wood cotton
bread butter cheese apple orange lemon coffee sugar salt pepper horse sheep tiger eagle fish snake
train plane ship road street corner tower church school office hospital library museum theatre
camera radio computer phone clock mirror picture pencil book page chapter word sentence language
history science nature weather rain snow wind storm sun moon star planet space rocket machine tool
hammer wheel chain rope knife sword shield armor crown king queen prince soldier captain pilot
driver farmer baker painter writer singer dancer player coach team game ball field court prize
money bank price trade
"""
_WORDS = _TEXT.split()


def make_words(rng: random.Random, num_words: int) -> str:
    """So many words, each with a space before it."""
    return "".join(f" {word}" for word in rng.choices(_WORDS, k=num_words))


@dataclass(frozen=True, slots=True)
class Rate:
    """What a server counts: so many tokens of each word, and ``fixed_tokens`` that it adds to a prompt."""

    tokens_per_word: float = 1.0
    fixed_tokens: float = 0.0

    def words_of(self, num_tokens: int, *, is_part: bool = False) -> int:
        """As many words as come nearest to so many tokens; ``is_part`` of a prompt adds nothing fixed."""
        own = num_tokens - (0.0 if is_part else self.fixed_tokens)
        return max(1, round(own / self.tokens_per_word))


WORD_IS_TOKEN = Rate()


def fit_rate(words: tuple[int, int], tokens: tuple[int, int]) -> Rate | None:
    """Of two prompts; ``None`` if what the server counts does not grow with them."""
    slope = (tokens[1] - tokens[0]) / (words[1] - words[0])
    if slope <= 0:
        return None
    return Rate(slope, max(0.0, tokens[0] - slope * words[0]))
