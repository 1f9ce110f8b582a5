"""`mini-vllm batch run`: a file of requests to a file of answers, through whatever happens meanwhile."""

import json
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cli.batch_service import Missing, create, download, get, upload
from cli.batch_state import BatchState
from cli.service import RequestFailed, make_client

EXIT_LINES_FAILED = 3
EXIT_INTERRUPTED = 130
_FINAL = ("completed", "failed", "expired", "cancelled")
_LOOK_EVERY_S = 1.0
_MAX_LINE_BYTES = 16_777_216
_MAX_SHOWN = 10


def run_batch(
    source: Path, output: Path, errors: Path | None, *, url: str, api_key: str | None
) -> int:
    """The exit status. Raises ``ServiceError`` where there is no output."""
    endpoint = _endpoint_of(source)
    state = BatchState.load(source, output, url)
    with make_client(url, api_key) as client:
        try:
            batch = _started(client, state, source, endpoint)
            batch = _followed(client, batch)
            errors = errors or output.with_name(output.name + ".errors.jsonl")
            _fetch(client, batch, output, errors)
        except KeyboardInterrupt:
            _say_how_to_go_on(state)
            return EXIT_INTERRUPTED
    state.forget()
    return _told(batch, output, errors)


def _endpoint_of(source: Path) -> str:
    """That of its first line; the service checks all of them."""
    with source.open("rb") as file:
        while raw := file.readline(_MAX_LINE_BYTES):
            if not raw.strip():
                continue
            try:
                return str(json.loads(raw)["url"])
            except (ValueError, KeyError, TypeError, RecursionError):
                raise RequestFailed(
                    f"{source}: the first line must be a JSON object with `custom_id`, `method`, "
                    "`url` and `body`"
                ) from None
    raise RequestFailed(f"{source} has no requests in it")


def _started(
    client: httpx.Client, state: BatchState, source: Path, endpoint: str
) -> dict[str, Any]:
    if state.batch_id:
        try:
            batch = get(client, state.batch_id)
            print(f"goes on with {state.batch_id}", file=sys.stderr)
            return batch
        except Missing:
            print(f"{state.batch_id} is no longer there; beginning anew", file=sys.stderr)
            state.begin_anew()
    state.save()  # a batch that is created without anybody hearing of it is found by its key
    for is_last in (False, True):
        if not state.file_id:
            state.file_id = upload(client, source)
            state.save()
        try:
            batch = create(client, state.file_id, endpoint, state.key)
            break
        except Missing:
            if is_last:
                raise
            state.begin_anew()  # the file has expired since
    state.batch_id = batch["id"]
    state.save()
    print(f"{batch['id']} runs; Ctrl-C leaves it running", file=sys.stderr)
    return batch


def _followed(client: httpx.Client, batch: dict[str, Any]) -> dict[str, Any]:
    """Once it has ended."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    console = Console(stderr=True)
    bar = Progress(*columns, console=console) if console.is_terminal else None
    with bar or nullcontext():
        task = bar.add_task(batch["status"], total=None, rate="") if bar else None
        while True:
            counts = batch["request_counts"]
            if bar is not None and task is not None:
                speed = bar.tasks[0].speed
                bar.update(
                    task,
                    description=batch["status"].replace("_", " "),
                    total=counts["total"] or None,
                    completed=counts["completed"] + counts["failed"],
                    rate=f"{speed:.1f} lines/s" if speed else "",
                )
            if batch["status"] in _FINAL:
                return batch
            time.sleep(_LOOK_EVERY_S)
            batch = get(client, batch["id"])


def _fetch(client: httpx.Client, batch: dict[str, Any], output: Path, errors: Path) -> None:
    if batch["status"] == "failed":
        return
    download(client, batch["output_file_id"], output)
    if batch["error_file_id"]:
        download(client, batch["error_file_id"], errors)


def _told(batch: dict[str, Any], output: Path, errors: Path) -> int:
    counts, status = batch["request_counts"], batch["status"]
    if status == "failed":
        found = batch["errors"]["data"]
        shown = [
            (f"line {e['line']}: " if e["line"] else "") + e["message"] for e in found[:_MAX_SHOWN]
        ]
        more = f"; and {len(found) - _MAX_SHOWN} more" if len(found) > _MAX_SHOWN else ""
        raise RequestFailed("the input is not valid: " + "; ".join(shown) + more)
    words = f"{counts['completed']} of {counts['total']} answered: {output}"
    if batch["error_file_id"]:
        words += f"; the others: {errors}"
    if status != "completed":
        raise RequestFailed(f"the batch was {status}; {words}")
    print(words, file=sys.stderr)
    return EXIT_LINES_FAILED if counts["failed"] else 0


def _say_how_to_go_on(state: BatchState) -> None:
    if not state.batch_id:
        print("\nthe batch was not created yet; the same command goes on", file=sys.stderr)
        return
    print(
        f"\n{state.batch_id} goes on without you. The same command waits for it again; "
        f"`mini-vllm batch cancel {state.batch_id}` ends it.",
        file=sys.stderr,
    )
