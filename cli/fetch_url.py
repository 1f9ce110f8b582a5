"""Fetches a model from a URL: goes on where it was interrupted, and keeps nothing that is no GGUF file."""

import hashlib
import json
import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

import httpx

from cli.partial_file import PartialFile, check_disk, ended_by_sigterm, partial_file
from cli.progress import Show
from cli.sources import HubFile, UrlFile, shown_address
from shared.errors import ModelUnusable, SetupError
from shared.gguf_header import read_facts

_TIMEOUT = httpx.Timeout(30, read=60)
_MAX_TRIES = 5
_PAUSE_S = 1.0


def fetch_url(
    source: UrlFile, model_dir: Path, *, progress: Show | None = None, pause_s: float = _PAUSE_S
) -> Path:
    """The file, under its name only when it is whole. What was interrupted is gone on with by the next
    call. Raises ``SetupError`` and ``ModelUnusable``."""
    target = model_dir / source.name
    try:
        with ended_by_sigterm(), partial_file(target, keeps_unfinished=True) as partial:
            if partial:
                _fill(source, partial, progress or (lambda *_: None), pause_s)
                _check(source, partial)
                partial.keep()
                _note_path(partial).unlink(missing_ok=True)
    except OSError as error:
        raise SetupError(f"{target} cannot be written: {error.strerror or error}") from None
    return target


def raise_if_other(source: HubFile | UrlFile, path: Path) -> None:
    """For a file that stands where the source would: ``SetupError`` if it is known to be another one."""
    if isinstance(source, UrlFile) and source.sha256:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != source.sha256:
            raise SetupError(
                f"{path} is another file: its SHA-256 is {found}; `mini-vllm model rm {path.stem}` first"
            )


def _fill(source: UrlFile, partial: PartialFile, show: Show, pause_s: float) -> None:
    with httpx.Client(timeout=_TIMEOUT, follow_redirects=True) as client:
        for tries_left in reversed(range(_MAX_TRIES)):
            try:
                return _fetch_rest(client, source, partial, show)
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
                if not tries_left or isinstance(error, httpx.UnsupportedProtocol):
                    raise SetupError(
                        f"{source.shown} could not be fetched: {reason}; the same command goes on where "
                        f"this one ended, after {os.fstat(partial.fd).st_size / 1e6:.1f} MB"
                    ) from None
                time.sleep(pause_s)
            except httpx.HTTPError as error:  # too many redirects, say
                raise SetupError(f"{source.shown} could not be fetched: {error}") from None


def _fetch_rest(client: httpx.Client, source: UrlFile, partial: PartialFile, show: Show) -> None:
    have_bytes = os.fstat(partial.fd).st_size
    headers = {"Accept-Encoding": "identity"}
    mark = _read_note(partial, source)
    if have_bytes and mark:
        headers |= {"Range": f"bytes={have_bytes}-", "If-Range": mark}
    else:
        have_bytes = 0
    with client.stream("GET", source.url, headers=headers) as response:
        if source.url.startswith("https:") and response.url.scheme != "https":
            raise SetupError(
                f"{source.shown} leads to {shown_address(str(response.url))}, without TLS"
            )
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE and have_bytes:
            if response.headers.get("content-range") == f"bytes */{have_bytes}":
                return  # it was whole already
            os.ftruncate(partial.fd, 0)
            raise httpx.RemoteProtocolError("what was fetched before is of another file")
        if response.is_error:
            raise SetupError(
                f"{source.shown} answers {response.status_code} {response.reason_phrase}"
            )
        if response.status_code != httpx.codes.PARTIAL_CONTENT:
            have_bytes = 0
        elif not response.headers.get("content-range", "").startswith(f"bytes {have_bytes}-"):
            os.ftruncate(partial.fd, 0)
            raise httpx.RemoteProtocolError("the server answers with another part than was asked")
        os.ftruncate(partial.fd, have_bytes)
        _write_note(partial, source, response)
        _receive(response, partial, have_bytes, show)


def _receive(response: httpx.Response, partial: PartialFile, have_bytes: int, show: Show) -> None:
    length = response.headers.get("content-length", "")
    total_bytes = have_bytes + int(length) if length.isdigit() else 0
    free_bytes = shutil.disk_usage(partial.target.parent).free
    check_disk(max(0, total_bytes - have_bytes), free_bytes, partial.target.parent)
    done_bytes, begin = have_bytes, b"" if have_bytes == 0 else b"GGUF"
    for block in response.iter_raw():
        if len(begin) < 4:
            begin += block[:4]
            # A page that says why not is often sent with status 200.
            if not b"GGUF".startswith(begin[:4]):
                _refuse(partial, "it does not begin with GGUF")
        _write_all(partial.fd, block, done_bytes)
        done_bytes += len(block)
        show(done_bytes, total_bytes)
    if total_bytes and done_bytes != total_bytes:
        raise httpx.RemoteProtocolError(f"{done_bytes} of {total_bytes} bytes came")


def _check(source: UrlFile, partial: PartialFile) -> None:
    if source.sha256:
        with partial.path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != source.sha256:
            _refuse(partial, f"its SHA-256 is {found}, not {source.sha256}")
    try:
        read_facts(partial.path)
    except ModelUnusable:
        _refuse(partial, "its header cannot be read")


def _refuse(partial: PartialFile, reason: str) -> None:
    os.ftruncate(partial.fd, 0)  # what is empty is not kept
    _note_path(partial).unlink(missing_ok=True)
    raise ModelUnusable(f"what was fetched is no {partial.target.name} to use: {reason}; not kept")


def _write_all(fd: int, block: bytes, at: int) -> None:
    view = memoryview(block)
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written


def _note_path(partial: PartialFile) -> Path:
    """Which state of which file the partial one is of."""
    return partial.path.with_name(partial.path.name + ".json")


def _read_note(partial: PartialFile, source: UrlFile) -> str | None:
    with suppress(OSError, ValueError, TypeError, KeyError):
        note = json.loads(_note_path(partial).read_text())
        if note["url"] == _url_hash(source) and isinstance(note["mark"], str):
            return str(note["mark"])
    return None


def _write_note(partial: PartialFile, source: UrlFile, response: httpx.Response) -> None:
    etag = response.headers.get("etag", "")
    # A weak one does not promise that the bytes are the same.
    mark = etag if re.fullmatch(r'"[^"]*"', etag) else response.headers.get("last-modified")
    _note_path(partial).write_text(json.dumps({"url": _url_hash(source), "mark": mark}))


def _url_hash(source: UrlFile) -> str:
    return hashlib.sha256(source.url.encode()).hexdigest()
