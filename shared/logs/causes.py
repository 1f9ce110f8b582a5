"""What a log may say of an exception: where it was raised, and its words only if they cannot be a user's.

A ``ValueError`` or a ``KeyError`` often quotes what it was given, and pydantic always does; that may be
a prompt. Their kind and place are told, their text is not.
"""

import traceback
from collections.abc import Iterator

from pydantic import ValidationError
from redis.exceptions import RedisError

from shared.errors import ServiceError, SetupError

#: Their text is the system's, or names kinds and attributes.
_TELLABLE = (
    OSError,
    RedisError,
    RuntimeError,
    AssertionError,
    AttributeError,
    ImportError,
    MemoryError,
    NameError,
    TypeError,
    SetupError,
)
_MAX_FRAMES = 40
_MAX_CAUSES = 8
_MAX_WORDS_CHARS = 500
_MAX_KINDS = 5
#: Redis repeats what it was sent after these words.
_ECHO = ", with args beginning with"


class Told:
    """Stands in a log call for an exception."""

    def __init__(self, error: BaseException) -> None:
        self._words = words_of(error)

    def __str__(self) -> str:
        return self._words

    __repr__ = __str__


def words_of(error: BaseException) -> str:
    kind = type(error).__name__
    if isinstance(error, ValidationError):
        rows = error.errors(include_url=False, include_context=False, include_input=False)
        kinds = ", ".join(sorted({row["type"] for row in rows})[:_MAX_KINDS])
        return f"{kind}: {len(rows)} errors of {error.title}: {kinds}"
    if isinstance(error, ServiceError) and not isinstance(error, SetupError):
        return f"{kind}: {error.code}"
    if not isinstance(error, _TELLABLE):
        return kind
    words = str(error).split(_ECHO)[0][:_MAX_WORDS_CHARS]
    return f"{kind}: {words}" if words else kind


def traceback_of(error: BaseException) -> str:
    """Without the words of what is not tellable; causes first, as Python has it."""
    return "\n".join(reversed(list(_parts(error, _MAX_CAUSES))))


def _parts(error: BaseException, num_left: int) -> Iterator[str]:
    frames = traceback.format_list(traceback.extract_tb(error.__traceback__, -_MAX_FRAMES))
    yield "".join(["Traceback (most recent call last):\n", *frames, words_of(error)])
    if num_left <= 0:
        return
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions[:num_left]:
            yield from _parts(inner, num_left - 1)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _parts(cause, num_left - 1)
