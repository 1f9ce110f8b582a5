"""Puts an upload into the store while it comes; of the file only some pieces are in memory."""

import time
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool

from api.files.expiry import read_expiry
from api.files.form import UploadForm
from api.files.record import FileRecord, new_file_id
from api.files.store import FileStore, Incoming
from shared.errors import BadRequest, BodyTooLarge

_WRITE_BYTES = 1_048_576


async def receive_file(
    store: FileStore,
    content_type: str,
    pieces: AsyncIterator[bytes],
    *,
    owner: str,
    max_bytes: int,
    ttl_s: int,
) -> FileRecord:
    """Raises ``BadRequest``, ``StorageFull`` or ``StorageUnusable``, and then nothing is kept."""
    form, file_id = UploadForm(content_type), new_file_id()
    incoming = await run_in_threadpool(store.begin, file_id)
    try:
        await _write(form, incoming, pieces, max_bytes)
        _check(form)
        expires_after_s = read_expiry(form.fields)
        now_s = int(time.time())
        record = FileRecord(
            id=file_id,
            owner=owner,
            filename=form.filename or "upload",
            purpose="batch",
            bytes=incoming.num_bytes,
            created_s=now_s,
            expires_s=now_s + (ttl_s if expires_after_s is None else expires_after_s),
        )
        await run_in_threadpool(incoming.finish)
        await run_in_threadpool(store.publish, incoming.path, record)
        return record
    finally:
        # Not in a thread: a request that is cancelled here would leave it.
        incoming.discard()


async def _write(
    form: UploadForm, incoming: Incoming, pieces: AsyncIterator[bytes], max_bytes: int
) -> None:
    held: list[bytes] = []
    num_held = 0
    async for piece in pieces:
        form.feed(piece)
        taken = form.take()
        held.append(taken)
        num_held += len(taken)
        if incoming.num_bytes + num_held > max_bytes:
            raise BodyTooLarge(f"file: must have at most {max_bytes} bytes (max_file_bytes)")
        if num_held >= _WRITE_BYTES:
            await run_in_threadpool(incoming.write, b"".join(held))
            held, num_held = [], 0
    if num_held:
        await run_in_threadpool(incoming.write, b"".join(held))


def _check(form: UploadForm) -> None:
    if not form.is_whole:
        raise BadRequest("the form ends before its last boundary")
    if form.filename is None:
        raise BadRequest("file: is required", field="file")
    purpose = form.fields.get("purpose")
    if purpose is None:
        raise BadRequest("purpose: is required", field="purpose")
    if purpose != "batch":
        raise BadRequest(f"purpose: only 'batch' is supported (got {purpose!r})", field="purpose")
