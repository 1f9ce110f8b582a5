"""When a delivery that failed is tried again. Pure."""

MAX_DELAY_S = 2 * 3600.0
_FACTOR = 4.0
#: Up to so much longer, so that what failed together does not come again together.
_JITTER = 0.2


def delay_s(attempt: int, first_s: float, chance: float) -> float:
    """After the ``attempt``-th try (from 1); ``chance`` is drawn by the caller, from 0 to 1.
    With the defaults the eighth and last try is about four hours after the first."""
    # NOTE: the exponent is bounded: a float overflows at 4 ** 512.
    longest_s = min(MAX_DELAY_S, first_s * _FACTOR ** min(attempt - 1, 32))
    return longest_s * (1 + _JITTER * chance)
