"""Which stored snapshot shares the longest prefix with a prompt. Pure; not safe among threads."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from worker.snapshots.chain import BLOCK_TOKENS, chain, num_common, pack_tokens

MAX_MATCHES = 8


@dataclass(frozen=True)
class Entry:
    """A stored snapshot. ``reusable``: how many of its tokens others may start from."""

    name: str
    scope: str
    tokens: array[int]
    first_position: int
    reusable: int
    used_s: float

    def covers(self, other: Entry) -> bool:
        """Whether all that the other one is good for, this one is good for as well."""
        length = len(other.tokens)
        return (
            self.scope == other.scope
            and len(self.tokens) >= length
            and self.reusable >= other.reusable
            and self.first_position <= other.first_position
            and self.tokens[:length] == other.tokens
        )


@dataclass(frozen=True)
class Match:
    entry: Entry
    num_common: int


class Index:
    """Each entry is listed under the digest of each of its reusable blocks, so the first digest of
    a prompt that is listed, looked at from its end, leads to those that share most."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        #: (scope, digest) -> names; a dict for its order and its cheap removal.
        self._listed: dict[tuple[str, bytes], dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, name: str) -> Entry | None:
        return self._entries.get(name)

    def add(self, entry: Entry) -> None:
        """One of the same name is replaced."""
        self.remove(entry.name)
        self._entries[entry.name] = entry
        for key in _keys(entry):
            self._listed.setdefault(key, {})[entry.name] = None

    def remove(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        for key in _keys(entry) if entry else ():
            names = self._listed[key]
            del names[name]
            if not names:
                del self._listed[key]

    def touch(self, name: str, used_s: float) -> None:
        if name in self._entries:
            self._entries[name] = replace(self._entries[name], used_s=used_s)

    def match(self, tokens: Iterable[int], scopes: Sequence[str]) -> list[Match]:
        """Longest first, at most 8; of equals the one with fewer tokens first."""
        wanted = pack_tokens(tokens)
        seen: set[str] = set()
        matches: list[Match] = []
        for depth, digest in reversed(list(enumerate(chain(wanted), start=1))):
            found: list[Match] = []
            for scope in dict.fromkeys(scopes):
                for name in self._listed.get((scope, digest), ()):
                    if name not in seen:
                        seen.add(name)
                        found.append(_compare(self._entries[name], wanted, depth))
            # All that is found later shares less than any of these.
            matches += heapq.nsmallest(MAX_MATCHES - len(matches), found, key=_rank)
            if len(matches) == MAX_MATCHES:
                break
        return matches


def _keys(entry: Entry) -> list[tuple[str, bytes]]:
    return [(entry.scope, digest) for digest in chain(entry.tokens[: entry.reusable])]


def _compare(entry: Entry, wanted: array[int], num_blocks: int) -> Match:
    common = num_common(entry.tokens, wanted, num_blocks * BLOCK_TOKENS)
    return Match(entry, min(common, entry.reusable))


def _rank(match: Match) -> tuple[int, int, str]:
    return -match.num_common, len(match.entry.tokens), match.entry.name
