"""Names of snapshot files: hashes only, nothing that says a key or a token. Pure."""

from __future__ import annotations

import hashlib
import re
from array import array
from dataclasses import dataclass

_NAME = re.compile(r"([0-9a-f]{16})\.([0-9a-f]{12})\.([0-9a-f]{16})\.([0-9]{1,10})\.kv")


@dataclass(frozen=True)
class NameParts:
    fingerprint_part: str
    scope_part: str
    num_tokens: int


def file_name(fingerprint: str, scope: str, tokens: array[int]) -> str:
    digest = hashlib.blake2b(tokens.tobytes(), digest_size=8).hexdigest()
    return f"{fingerprint_part(fingerprint)}.{scope_part(scope)}.{digest}.{len(tokens)}.kv"


def parse_name(name: str) -> NameParts | None:
    """``None`` for what is no snapshot's name."""
    found = _NAME.fullmatch(name)
    return NameParts(found[1], found[2], int(found[4])) if found else None


def fingerprint_part(fingerprint: str) -> str:
    return fingerprint[:16]


def scope_part(scope: str) -> str:
    return hashlib.blake2b(scope.encode(), digest_size=6).hexdigest()
