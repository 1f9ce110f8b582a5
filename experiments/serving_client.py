"""A client of OpenAI's API that notes when the text of a stream came. It knows no workload.

Nothing that goes wrong with one request is raised: it is the answer's ``error``.
"""

import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from experiments.serving_answers import ERROR_CHARS, Answer
from shared.errors import SetupError

_TIMEOUT = httpx.Timeout(30, read=600)


@dataclass(frozen=True, slots=True)
class Server:
    name: str
    url: str  #: without a slash at its end, and without /v1


class Client:
    """In an ``async with``."""

    def __init__(self, server: Server, model: str, api_key: str | None) -> None:
        self.server = server
        self._model = model
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        no_limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        self._http = httpx.AsyncClient(
            base_url=server.url, headers=headers, timeout=_TIMEOUT, limits=no_limits
        )

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def list_models(self) -> list[str]:
        """Raises ``SetupError`` if this is no server of OpenAI's API, or does not let us in."""
        try:
            response = await self._http.get("/v1/models")
            response.raise_for_status()
            return [str(model["id"]) for model in response.json()["data"]]
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            what = f"{self.server.url}/v1/models: {error!r}"
            raise SetupError(f"--url {self.server.name}: {what}", field="url") from None

    async def complete(self, prompt: str, output_tokens: int, answer: Answer) -> None:
        await self._stream("/v1/completions", {"prompt": prompt}, output_tokens, answer)

    async def chat(
        self, messages: list[dict[str, str]], output_tokens: int, answer: Answer
    ) -> None:
        await self._stream("/v1/chat/completions", {"messages": messages}, output_tokens, answer)

    async def _stream(
        self, path: str, what: Mapping[str, Any], output_tokens: int, answer: Answer
    ) -> None:
        body = {
            "model": self._model,
            **what,
            "max_tokens": output_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        try:
            async with self._http.stream("POST", path, json=body) as response:
                if response.status_code != 200:
                    text = (await response.aread()).decode(errors="replace")
                    answer.error = f"{response.status_code}: {text}"[:ERROR_CHARS]
                    return
                async for block in split_blocks(response.aiter_bytes()):
                    now_s = time.monotonic()
                    if (event := parse(block)) is not None:
                        answer.feed(event, now_s)
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            answer.error = answer.error or repr(error)[:ERROR_CHARS]
        if not answer.error and not answer.has_usage:
            answer.error = "the stream ended without its usage"


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
