"""Prompts of a given length that no two jobs share. Pure."""

import random
import string

_WORDS = [
    "river",
    "stone",
    "cloud",
    "lantern",
    "harbour",
    "meadow",
    "winter",
    "engine",
    "paper",
    "silver",
]


def make_prompt(number: int, num_words: int = 45) -> str:
    """45 words are some 64 tokens of the default model, its chat template included."""
    words = " ".join(
        _WORDS[(number * 7 + i * (number + 3)) % len(_WORDS)] for i in range(num_words)
    )
    return f"Job {number}. {words}"


def make_text(number: int, num_chars: int) -> str:
    """Exactly so many characters, of words of drawn letters: it can be compressed about as well as
    prose, unlike the ten words of ``make_prompt``."""
    rng = random.Random(number)
    letters = string.ascii_lowercase + " " * 5
    return "".join(rng.choices(letters, k=num_chars))
