"""The header of a snapshot file, packed and unpacked. Pure.

prelude   magic, version, checksum of all that follows up to the end of the tokens
facts     fingerprint, scope, counts, first position, size of the state
scope     UTF-8
tokens    32 bits each, in the order of this machine: files never leave their host
zeros     up to the next multiple of 4096, where the state begins
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from worker.snapshots.chain import pack_tokens

VERSION = 1
#: What mmap wants an offset to be a multiple of, on all that llama.cpp is built for here.
ALIGNMENT_BYTES = 4096
_MAGIC = b"MVLLM-KV"
_CHECKSUM_BYTES = 16
_PRELUDE = struct.Struct(f"=8sI{_CHECKSUM_BYTES}s")
_FACTS = struct.Struct("=32sHIIIQ")
_START = _PRELUDE.size + _FACTS.size
_TOKEN_BYTES = array("i").itemsize


class BadRecord(Exception):
    """Not the header of a snapshot of this version, or not a whole one."""


@dataclass(frozen=True)
class Header:
    fingerprint: str
    scope: str
    tokens: array[int]
    reusable: int
    first_position: int
    state_bytes: int

    @property
    def offset(self) -> int:
        """Where the state begins in the file."""
        return _offset(_START + len(self.scope.encode()) + len(self.tokens) * _TOKEN_BYTES)

    @property
    def file_bytes(self) -> int:
        return self.offset + self.state_bytes


def pack(
    *,
    fingerprint: str,
    scope: str,
    tokens: Iterable[int],
    reusable: int,
    first_position: int,
    state_bytes: int,
) -> bytes:
    """As long as the state's offset: the state follows at once."""
    packed = pack_tokens(tokens)
    if len(fingerprint) != 32:
        raise ValueError(f"a fingerprint has 32 characters, not {len(fingerprint)}")
    if not 0 <= reusable <= len(packed):
        raise ValueError(f"reusable is from 0 to the number of tokens ({len(packed)}): {reusable}")
    name = scope.encode()
    facts = _FACTS.pack(
        fingerprint.encode(), len(name), len(packed), reusable, first_position, state_bytes
    )
    body = facts + name + packed.tobytes()
    header = _PRELUDE.pack(_MAGIC, VERSION, _checksum(body)) + body
    return header.ljust(_offset(len(header)), b"\0")


def header_bytes(first: bytes) -> int:
    """How much ``unpack`` needs, as the first 4096 bytes say; they need not be true."""
    magic, version, _ = _split(first, _PRELUDE, 0)
    if magic != _MAGIC or version != VERSION:
        raise BadRecord("not a snapshot of this version")
    _, scope_bytes, num_tokens, *_ = _split(first, _FACTS, _PRELUDE.size)
    return int(_START + scope_bytes + num_tokens * _TOKEN_BYTES)


def unpack(first: bytes) -> Header:
    """From the first bytes of a file, ``header_bytes`` of them or more."""
    end = header_bytes(first)
    if len(first) < end:
        raise BadRecord(f"cut short: {len(first)} of {end} bytes")
    if _checksum(first[_PRELUDE.size : end]) != _split(first, _PRELUDE, 0)[2]:
        raise BadRecord("the checksum differs")
    facts = _split(first, _FACTS, _PRELUDE.size)
    fingerprint, scope_bytes, _, reusable, first_position, state_bytes = facts
    tokens = array("i")
    tokens.frombytes(first[_START + scope_bytes : end])
    try:
        scope = first[_START : _START + scope_bytes].decode()
        name = fingerprint.decode("ascii")
    except UnicodeDecodeError:
        raise BadRecord("the scope or the fingerprint is not text") from None
    return Header(name, scope, tokens, reusable, first_position, state_bytes)


def _split(data: bytes, layout: struct.Struct, offset: int) -> tuple[Any, ...]:
    if len(data) < offset + layout.size:
        raise BadRecord(f"cut short: {len(data)} bytes")
    return layout.unpack_from(data, offset)


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest()


def _offset(num_bytes: int) -> int:
    return -(-num_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
