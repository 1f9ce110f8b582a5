"""The files and batches of a running service. What passes is tried again for a while."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from cli.service import MAX_OUTAGE_S, RETRY_PAUSE_S, RequestFailed, message_of, retry_after_s

Object = dict[str, Any]
_PASSING = (429, 500, 502, 503, 504)


class Missing(RequestFailed):
    """The service has none with this id."""


def upload(client: httpx.Client, source: Path) -> str:
    def send() -> httpx.Response:
        with source.open("rb") as file:
            files = {"file": (source.name, file, "application/jsonl")}
            return client.post("/v1/files", data={"purpose": "batch"}, files=files, timeout=300)

    return str(_ask(client, send)["id"])


def create(client: httpx.Client, file_id: str, endpoint: str, key: str) -> Object:
    body = {"input_file_id": file_id, "endpoint": endpoint, "completion_window": "24h"}
    headers = {"Idempotency-Key": key}
    return _ask(client, lambda: client.post("/v1/batches", json=body, headers=headers))


def get(client: httpx.Client, batch_id: str) -> Object:
    return _ask(client, lambda: client.get(f"/v1/batches/{batch_id}"))


def cancel(client: httpx.Client, batch_id: str) -> Object:
    return _ask(client, lambda: client.post(f"/v1/batches/{batch_id}/cancel"))


def newest(client: httpx.Client, limit: int) -> list[Object]:
    page = _ask(client, lambda: client.get("/v1/batches", params={"limit": limit}))
    found: list[Object] = page["data"]
    return found


def download(client: httpx.Client, file_id: str | None, target: Path) -> None:
    """``target`` is there when it is whole; empty where there is no such file."""
    part = target.with_name(target.name + ".part")

    def fetch() -> httpx.Response:
        with part.open("wb") as file:
            if not file_id:
                return httpx.Response(200, json={})
            with client.stream("GET", f"/v1/files/{file_id}/content") as response:
                if response.status_code != httpx.codes.OK:
                    response.read()
                    return response
                for piece in response.iter_bytes():
                    file.write(piece)
        return httpx.Response(200, json={})

    try:
        _ask(client, fetch)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _ask(client: httpx.Client, send: Callable[[], httpx.Response]) -> Object:
    end_s = time.monotonic() + MAX_OUTAGE_S
    while True:
        wait_s = RETRY_PAUSE_S
        try:
            response = send()
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise RequestFailed(f"{client.base_url}: {error}") from None
        except httpx.TransportError as error:
            problem = f"{client.base_url}: {error or type(error).__name__}"
        else:
            if response.is_success:
                found: Object = response.json()
                return found
            problem = message_of(response)
            if response.status_code == httpx.codes.NOT_FOUND:
                raise Missing(problem)
            if response.status_code not in _PASSING:
                raise RequestFailed(problem)
            wait_s = retry_after_s(response)
        if time.monotonic() + wait_s > end_s:
            raise RequestFailed(problem)
        time.sleep(wait_s)
