"""The cheapest HTTP client there is, so that it takes little from the cores that are measured.

One connection per request; a stream is given event by event with the time it came.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_LIMIT_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any  #: of JSON; None where there is none


@dataclass(frozen=True, slots=True)
class Heard:
    """One event of a stream. ``came_s`` is monotonic, when its last byte was read."""

    kind: str
    data: dict[str, Any]
    came_s: float


async def ask(
    url: str,
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """``body`` is sent as JSON, or as it is if it is bytes."""
    payload = body if isinstance(body, bytes) else b"" if body is None else _to_json(body)
    lines = {"Connection": "close", "Content-Length": str(len(payload)), **(headers or {})}
    async with _sent(url, method, path, lines, payload) as (status, fields, reader):
        num_bytes = int(fields.get("content-length", "0"))
        content = await reader.readexactly(num_bytes)
    return Answer(status, json.loads(content) if content else None)


async def submit(url: str, job: Mapping[str, Any]) -> str:
    """The job's id. Raises ``RuntimeError`` if it was refused."""
    answer = await ask(url, "POST", "/generate", job)
    if answer.status != 202:
        raise RuntimeError(f"a job was refused: {answer}")
    return str(answer.body["job_id"])


@asynccontextmanager
async def open_stream(url: str, job_id: str) -> AsyncIterator[asyncio.StreamReader]:
    """An open stream of a job, whose head was read."""
    async with _sent(url, "GET", f"/jobs/{job_id}/stream", {}, b"") as (status, _, reader):
        if status != 200:
            raise RuntimeError(f"the stream of {job_id} was refused with {status}")
        yield reader


async def follow(url: str, job_id: str) -> AsyncGenerator[Heard, None]:
    """To the end event. Whoever leaves earlier closes the generator, and with it the connection."""
    async with open_stream(url, job_id) as reader:
        rest = b""
        while size := int((await reader.readline()).strip() or b"0", 16):
            rest += await reader.readexactly(size)
            await reader.readexactly(2)
            now_s = time.monotonic()
            *blocks, rest = rest.split(b"\n\n")
            for block in blocks:
                if heard := _parse(block, now_s):
                    yield heard


@asynccontextmanager
async def _sent(
    url: str, method: str, path: str, headers: Mapping[str, str], payload: bytes
) -> AsyncIterator[tuple[int, dict[str, str], asyncio.StreamReader]]:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(
        address.hostname, address.port, limit=_LIMIT_BYTES
    )
    try:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {address.netloc}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + payload)
        status_line, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        pairs = (line.partition(":") for line in rest if line)
        fields = {name.lower(): value.strip() for name, _, value in pairs}
        yield int(status_line.split()[1]), fields, reader
    finally:
        writer.close()


def _parse(block: bytes, now_s: float) -> Heard | None:
    """``None`` of a comment."""
    lines = block.decode().split("\n")  # JSON may have what else ends a line for Python
    fields = dict(line.split(": ", 1) for line in lines if line and not line.startswith(":"))
    if "data" not in fields:
        return None
    return Heard(fields["event"], json.loads(fields["data"]), now_s)


def _to_json(body: Any) -> bytes:
    return json.dumps(body).encode()
