"""Who may start from whose snapshot: the scope that each snapshot carries, and that a look-up names. Pure.

Scopes are written into files of the host directory: they are hashes, and never say a key.
"""

from hashlib import blake2b
from typing import Literal

#: ``key``: jobs of the same API key; ``all``: every job. The setting of that name.
Sharing = Literal["key", "all"]

_PUBLIC = "public"
_ALL = "all"
_KEY = "key:"
_JOB = "job:"


def public() -> str:
    """What an admin warmed for everybody, whatever the sharing."""
    return _PUBLIC


def of_owner(owner: str, sharing: Sharing) -> str:
    """Of the jobs of one API key; one scope for all if sharing says so, or if no keys are set (the
    owner is then empty)."""
    if sharing == "all" or not owner:
        return _ALL
    return _KEY + blake2b(owner.encode(), digest_size=12).hexdigest()


def of_job(job_id: str) -> str:
    """Of one job alone: it was parked, or is saved while it runs."""
    return _JOB + job_id


def kind_of(scope: str) -> Literal["public", "all", "key", "job", "unknown"]:
    """Which of these made the scope, for those who read a list of them."""
    if scope == _PUBLIC:
        return "public"
    if scope == _ALL:
        return "all"
    if scope.startswith(_KEY):
        return "key"
    return "job" if scope.startswith(_JOB) else "unknown"
