"""Files of requests, and what batches made of them."""

import json
from pathlib import Path
from typing import Any, Literal

import openai
from openai.types import Batch

from tests.gateway import RunningGateway
from tests.servers import wait_for

CHAT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
FINAL = ("completed", "failed", "expired", "cancelled")


def line(number: int, **body: Any) -> bytes:
    fields: dict[str, Any] = {"max_tokens": 4, "messages": [{"role": "user", "content": "x"}]}
    row = {"custom_id": f"c{number}", "method": "POST", "url": CHAT, "body": fields | body}
    return json.dumps(row).encode() + b"\n"


def lines(count: int, **body: Any) -> bytes:
    return b"".join(line(number, **body) for number in range(count))


def client_of(gateway: RunningGateway, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=gateway.url + "/v1", api_key=key, max_retries=0)


def create(client: openai.OpenAI, content: bytes, **fields: Any) -> Batch:
    file = client.files.create(file=("in.jsonl", content), purpose="batch")
    return client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        **fields,
    )


def wait_until(
    client: openai.OpenAI, batch: Batch, *statuses: str, deadline_s: float = 30
) -> Batch:
    def find() -> Batch | None:
        found = client.batches.retrieve(batch.id)
        return found if found.status in (statuses or FINAL) else None

    found: Batch = wait_for(find, f"the batch is {statuses or 'over'}", deadline_s)
    return found


def rows(client: openai.OpenAI, file_id: str | None) -> list[dict[str, Any]]:
    if file_id is None:
        return []
    return [json.loads(raw) for raw in client.files.content(file_id).text.splitlines()]


def ids(found: list[dict[str, Any]]) -> list[str]:
    return [row["custom_id"] for row in found]


def left_in(folder: Path) -> list[str]:
    """Names of what is no whole file."""
    return sorted(path.name for path in folder.iterdir() if ".part" in path.name)
