"""Prompts of a given length that no two jobs share. Pure."""

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
    """Exactly so many characters."""
    return make_prompt(number, num_chars // 4 + 2)[:num_chars].ljust(num_chars, ".")
