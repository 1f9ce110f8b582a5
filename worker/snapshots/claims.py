"""What the workers of a host are computing at this moment: a locked file for each prompt.

The kernel lets go of the lock when a worker dies, so nobody waits for the dead.
"""

from __future__ import annotations

import fcntl
import logging
import os
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from shared.host import is_held
from worker.snapshots.chain import num_common, pack_tokens
from worker.snapshots.names import fingerprint_part, scope_part
from worker.snapshots.record import BadRecord, pack, unpack

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClaimMatch:
    """Another worker computes ``num_tokens`` from ``start`` on, the first ``num_common`` of which are
    those that were looked up."""

    name: str
    num_common: int
    num_tokens: int
    start: int


class Claim:
    """Held until released, or until this process is gone. Released twice, it does nothing."""

    def __init__(self, path: Path | None = None, fd: int = -1) -> None:
        self._path = path
        self._fd = fd

    def release(self) -> None:
        path, self._path = self._path, None
        if path is not None:
            with suppress(OSError):
                path.unlink()
            os.close(self._fd)


class Claims:
    def __init__(self, path: Path, *, fingerprint: str) -> None:
        """Raises ``OSError`` if the folder cannot be made."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        self._fingerprint = fingerprint
        self._mine = uuid4().hex[:12]
        for name in self._names():  # nobody else may ever ask for what a dead one was computing
            self.is_live(name)

    def claim(self, scope: str, tokens: Iterable[int], start: int) -> Claim:
        """Never raises: where it cannot be told, others compute the same."""
        parts = (fingerprint_part(self._fingerprint), scope_part(scope), self._mine)
        path = self._path / ".".join((*parts, uuid4().hex[:12]))
        packed = pack_tokens(tokens)
        header = pack(
            fingerprint=self._fingerprint,
            scope=scope,
            tokens=packed,
            reusable=len(packed),
            first_position=start,
            state_bytes=0,
        )
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            log.debug("a claim cannot be made: %s", error)
            return Claim()
        claim = Claim(path, fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.pwrite(fd, header, 0)
        except OSError as error:
            log.debug("a claim cannot be made: %s", error)
            claim.release()
        return claim

    def match(
        self, tokens: Iterable[int], scopes: Sequence[str], *, start: int
    ) -> list[ClaimMatch]:
        """Those of other workers with more than ``start`` tokens in common, the most first."""
        wanted, found = pack_tokens(tokens), []
        fingerprint = fingerprint_part(self._fingerprint)
        parts = {scope_part(scope) for scope in scopes}
        for name in self._names():
            words = name.split(".")
            if len(words) != 4 or words[0] != fingerprint or words[1] not in parts:
                continue
            if words[2] == self._mine or not self.is_live(name):
                continue
            match = self._read(name, wanted, scopes)
            if match is not None and match.num_common > start:
                found.append(match)
        return sorted(found, key=lambda match: -match.num_common)

    def is_live(self, name: str) -> bool:
        """One whose worker is dead is removed."""
        path = self._path / name
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            if is_held(fd):
                return True
            path.unlink(missing_ok=True)
            return False
        finally:
            os.close(fd)

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._path)
        except OSError:
            return []

    def _read(self, name: str, wanted: array[int], scopes: Sequence[str]) -> ClaimMatch | None:
        try:
            header = unpack((self._path / name).read_bytes())
        except (OSError, BadRecord):  # gone, or not written yet
            return None
        if header.fingerprint != self._fingerprint or header.scope not in scopes:
            return None
        common = num_common(header.tokens, wanted)
        return ClaimMatch(name, common, len(header.tokens), header.first_position)
