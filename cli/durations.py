"""Spans of time as people write and read them. Pure."""

import re

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_duration_s(text: str) -> float:
    """``90s``, ``30m``, ``2h``, ``1d``; seconds where there is no unit. Raises ``ValueError``."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd]?)", text.strip())
    if not found:
        raise ValueError(f"must be like 90s, 30m, 2h or 1d (got {text[:40]!r})")
    return float(found[1]) * _SECONDS[found[2] or "s"]


def duration_text(seconds: float) -> str:
    """In the largest unit of which there is at least one."""
    unit = next((u for u in "dhm" if seconds >= _SECONDS[u]), "s")
    return f"{int(seconds / _SECONDS[unit])} {unit}"
