"""A client of OpenAI's API that notes when the text of a stream came. It knows no workload.

Nothing that goes wrong with one request is raised: it is the answer's ``error``.
"""

import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from cli.bench.answers import Answer
from cli.bench.asks import Ask
from shared.errors import SetupError

_TIMEOUT = httpx.Timeout(30, read=600, pool=None)


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    url: str  #: without a slash at its end, and without /v1

    @property
    def shown_url(self) -> str:
        """Without the password that it may have."""
        scheme, sign, rest = self.url.partition("://")
        address, slash, path = rest.partition("/")
        return f"{scheme}{sign}{address.rpartition('@')[2]}{slash}{path}"


class Client:
    """In an ``async with``; ``connect`` before anything else."""

    def __init__(self, server: Server, api_key: str | None) -> None:
        self.server = server
        self.model = ""
        self.knows_ignore_eos = True
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        no_limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        try:
            self._http = httpx.AsyncClient(
                base_url=server.url, headers=headers, timeout=_TIMEOUT, limits=no_limits
            )
        except UnicodeEncodeError:
            raise SetupError("--key: must be ASCII", field="key") from None
        except httpx.InvalidURL as error:
            raise SetupError(f"--url {server.shown_url}: {error}", field="url") from None

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def choose_model(self, asked: str | None) -> None:
        """The one asked for, else the only one of the server; raises ``SetupError`` if it has several."""
        names = await self._list_models()
        if asked is None and len(names) != 1:
            told = f"serves {', '.join(names)}" if names else "serves none"
            raise SetupError(f"--model: {self.server.name} {told}; name one", field="model")
        self.model = asked if asked is not None else names[0]

    async def _list_models(self) -> list[str]:
        """Raises ``SetupError`` if this is no server of OpenAI's API, or does not let us in."""
        try:
            response = await self._http.get("/v1/models")
            response.raise_for_status()
            return [str(model["id"]) for model in response.json()["data"]]
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
            reason = (str(error) or repr(error)).splitlines()[0]
            reason = reason.replace(self.server.url, self.server.shown_url)
            what = f"{self.server.shown_url}/v1/models: {reason}"
            raise SetupError(f"--url {self.server.name}: {what}", field="url") from None

    async def send(self, ask: Ask, answer: Answer) -> None:
        body = {
            "model": self.model,
            **ask.content,
            "max_tokens": ask.output_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.knows_ignore_eos:
            body["ignore_eos"] = True
        try:
            await self._stream(ask.path, body, answer)
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
            answer.fail(_kind_of(error), repr(error), time.monotonic())
        if not answer.has_usage:
            what = "the stream ended without its usage"
            answer.fail("no usage", what, time.monotonic())

    async def _stream(self, path: str, body: Mapping[str, Any], answer: Answer) -> None:
        async with self._http.stream("POST", path, json=body) as response:
            if response.status_code != 200:
                text = (await response.aread()).decode(errors="replace")
                status = response.status_code
                answer.fail(f"HTTP {status}", f"{status}: {text}", time.monotonic())
                return
            async for block in split_blocks(response.aiter_bytes()):
                now_s = time.monotonic()
                if (event := parse(block)) is not None:
                    answer.feed(event, now_s)


def _kind_of(error: Exception) -> str:
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return "connection refused"
        case httpx.TimeoutException():
            return "timeout"
        case httpx.HTTPError():
            return "connection lost"
        case _:
            return "not OpenAI's API"


async def split_blocks(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The events of a server-sent stream, as soon as they are whole."""
    rest = b""
    async for piece in stream:
        *blocks, rest = (rest + piece).replace(b"\r\n", b"\n").split(b"\n\n")
        for block in blocks:
            yield block


def parse(block: bytes) -> dict[str, Any] | None:
    """``None`` of comments and of the end. llama-server writes some errors as ``error: {...}``."""
    for line in block.split(b"\n"):
        kind, _, value = line.partition(b":")
        if kind == b"data" and value.strip() != b"[DONE]":
            return dict(json.loads(value))
        if kind == b"error":
            return {"error": value.decode(errors="replace").strip()}
    return None
