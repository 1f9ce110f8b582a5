"""Who may do what: API keys, admin keys, and one for the metrics. Pure; only hashes are kept.

A key is given as it is, or as ``sha256:<hex>`` of it, so that a file need not hold the key itself.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from shared.errors import SetupError
from shared.exposure import split_keys
from shared.settings import Settings

_HASHED = re.compile(r"sha256:([0-9a-f]{64})")
_KEY = re.compile(r"[\x21-\x7e]{1,512}")


class Role(Enum):
    USER = "user"
    ADMIN = "admin"
    METRICS = "metrics"


@dataclass(frozen=True, slots=True)
class Caller:
    """``owner`` names the key in Redis without giving it away; '' where no keys are set."""

    owner: str
    role: Role

    def may_see(self, owner: str) -> bool:
        """Whether a job of that owner is there for this caller."""
        return self.role is Role.ADMIN or self.owner == owner


ANYBODY = Caller(owner="", role=Role.ADMIN)


@dataclass(frozen=True, slots=True)
class Keyring:
    """SHA-256 of each key, in hex, by what it is for."""

    users: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()
    metrics: str | None = None

    @classmethod
    def from_settings(cls, settings: Settings) -> "Keyring":
        """Raises ``SetupError`` for a key that no client could send, or a file that cannot be read."""
        metrics = _hashes(
            "MINI_VLLM_METRICS_KEY", split_keys(settings.metrics_key.get_secret_value())
        )
        return cls(
            users=_hashes("MINI_VLLM_API_KEYS", split_keys(settings.api_keys.get_secret_value()))
            + _from_file("MINI_VLLM_API_KEYS_FILE", settings.api_keys_file),
            admins=_hashes(
                "MINI_VLLM_ADMIN_KEYS", split_keys(settings.admin_keys.get_secret_value())
            )
            + _from_file("MINI_VLLM_ADMIN_KEYS_FILE", settings.admin_keys_file),
            metrics=metrics[0] if metrics else None,
        )

    @property
    def is_open(self) -> bool:
        """No key is needed, but for the metrics if they have their own."""
        return not (self.users or self.admins)

    def identify(self, key: str | None) -> Caller | None:
        """``None`` for a key that is not known. Every key is compared, each in constant time."""
        digest = _hash(key or "")
        role = self._role_of(digest)
        return None if key is None or role is None else Caller(_owner(digest), role)

    def _role_of(self, digest: str) -> Role | None:
        found: Role | None = None
        metrics = () if self.metrics is None else (self.metrics,)
        for role, digests in (
            (Role.METRICS, metrics),
            (Role.USER, self.users),
            (Role.ADMIN, self.admins),
        ):
            for known in digests:
                if hmac.compare_digest(known, digest):
                    found = role
        return found


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def _owner(digest: str) -> str:
    return hashlib.sha256(f"owner:{digest}".encode()).hexdigest()[:16]


def _from_file(setting: str, path: Path | None) -> tuple[str, ...]:
    """One key a line; empty lines and comments (#) are left out."""
    if path is None:
        return ()
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"{setting}={str(path)!r} cannot be read: {error}") from None
    keys = _hashes(setting, [line.strip() for line in lines if not line.lstrip().startswith("#")])
    if not keys:
        raise SetupError(f"{setting}={str(path)!r} has no key in it")
    return keys


def _hashes(setting: str, keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(_checked_hash(setting, number, key) for number, key in enumerate(keys, 1) if key)


def _checked_hash(setting: str, number: int, key: str) -> str:
    hashed = _HASHED.fullmatch(key)
    if hashed:
        return hashed[1]
    if key.startswith("sha256:"):
        raise SetupError(f"{setting}: key {number}: sha256: must be followed by 64 digits of hex")
    if not _KEY.fullmatch(key):
        raise SetupError(
            f"{setting}: key {number}: must be at most 512 characters, printable ASCII without spaces"
        )
    return _hash(key)
