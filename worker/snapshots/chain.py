"""Tokens as this package keeps them, and the hash chain over their blocks. Pure."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable

BLOCK_TOKENS = 16
DIGEST_BYTES = 16
_BLOCK_BYTES = BLOCK_TOKENS * array("i").itemsize


def pack_tokens(tokens: Iterable[int]) -> array[int]:
    """A copy, so that a list that goes on growing does no harm; an array is taken as it is."""
    return tokens if isinstance(tokens, array) and tokens.typecode == "i" else array("i", tokens)


def chain(tokens: Iterable[int]) -> list[bytes]:
    """A digest for each whole block, of all tokens up to its end. What is left over has none."""
    data = pack_tokens(tokens).tobytes()
    digests: list[bytes] = []
    digest = b""
    for end in range(_BLOCK_BYTES, len(data) + 1, _BLOCK_BYTES):
        block = data[end - _BLOCK_BYTES : end]
        digest = hashlib.blake2b(digest + block, digest_size=DIGEST_BYTES).digest()
        digests.append(digest)
    return digests


def num_common(first: array[int], second: array[int], start: int = 0) -> int:
    """Length of the longest common prefix, exactly. The first ``start`` are known to be alike."""
    end = min(len(first), len(second))
    # Slices of arrays are compared at the speed of memory; only the differing block is walked.
    while start < end:
        stop = min(start + BLOCK_TOKENS, end)
        if first[start:stop] != second[start:stop]:
            break
        start = stop
    while start < end and first[start] == second[start]:
        start += 1
    return start
