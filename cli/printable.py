"""Text of others as a terminal may show it. Pure."""

import re

#: All that moves a cursor, changes a colour or hides what is there; not line ends and tabs. With marks that
#: turn the direction of what follows.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """What a model wrote cannot do to a terminal what it likes: its controls are shown as what they are."""
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def one_line(text: str, max_chars: int) -> str:
    """The beginning of it, without line ends."""
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= max_chars else flat[: max_chars - 1] + "…"
