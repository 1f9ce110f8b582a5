"""A stored file's header as an entry of the index, held against the file's name and size."""

import os
from io import FileIO
from pathlib import Path

from worker.snapshots.folder import StoredFile
from worker.snapshots.index import Entry
from worker.snapshots.mapped import State, map_state
from worker.snapshots.names import file_name
from worker.snapshots.record import ALIGNMENT_BYTES, BadRecord, Header, header_bytes, unpack


def read_entry(path: Path, file: StoredFile, fingerprint: str) -> Entry | None:
    """None for another model whose name begins alike. Raises ``OSError``, and ``BadRecord`` for what is
    not what its name says."""
    header = read_header(path)
    if header.fingerprint != fingerprint:
        return None
    name = file_name(header.fingerprint, header.scope, header.tokens)
    if header.file_bytes != file.num_bytes or name != file.name or not header.state_bytes:
        raise BadRecord("another size or name than its header says")
    return Entry(
        name=file.name,
        scope=header.scope,
        tokens=header.tokens,
        first_position=header.first_position,
        reusable=header.reusable,
        used_s=file.used_s,
    )


def read_header(path: Path) -> Header:
    """Raises ``OSError``, and ``BadRecord`` for what is no snapshot of this version."""
    with path.open("rb", buffering=0) as opened:
        return _read_header(opened)


def open_state(path: Path, entry: Entry, fingerprint: str) -> State:
    """Raises ``OSError``, and ``BadRecord`` if the file is not the entry's: one of the same tokens, from
    which others may start elsewhere, can have taken its place."""
    with path.open("rb", buffering=0) as opened:
        header = _read_header(opened)
        found = (header.fingerprint, header.scope, header.reusable, header.first_position)
        wanted = (fingerprint, entry.scope, entry.reusable, entry.first_position)
        if found != wanted or header.tokens != entry.tokens:
            raise BadRecord("another snapshot than the one that was found")
        return map_state(opened.fileno(), path, header.offset, header.state_bytes)


def _read_header(file: FileIO) -> Header:
    first = file.read(ALIGNMENT_BYTES)
    # The length is not checked yet: no more is read than there is.
    rest = min(header_bytes(first), os.fstat(file.fileno()).st_size) - len(first)
    return unpack(first + file.read(rest) if rest > 0 else first)
