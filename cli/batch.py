"""``mini-vllm batch``: many requests from a file, and what becomes of them."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from cli.job import DEFAULT_URL
from cli.service import make_client

app = typer.Typer(no_args_is_help=True, help="Run a file of requests, at low priority.")

_Url = Annotated[str, typer.Option(envvar="MINI_VLLM_URL", help="the running service")]
_Key = Annotated[
    str | None, typer.Option(envvar="MINI_VLLM_API_KEY", help="if the service needs one")
]
_Id = Annotated[str, typer.Argument(help="`batch_...`; `batch list` shows them")]


@app.command("run")
def run_command(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN.JSONL", help="one request a line, as OpenAI's Batch API has it"),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="one answer a line")],
    errors: Annotated[
        Path | None,
        typer.Option(help="lines that failed; default: the output's name and .errors.jsonl"),
    ] = None,
    url: _Url = DEFAULT_URL,
    api_key: _Key = None,
) -> None:
    """Run a file of requests and wait for the answers.

    The batch is the service's: Ctrl-C, or the end of this machine, leaves it running. The same command
    again goes on where it is (it keeps OUTPUT.batch until it has the answers).

    Ends with code 0 if every line was answered, 3 if some failed, 1 if there are no answers or the batch
    was cancelled or expired, 130 after Ctrl-C.

    Example: mini-vllm batch run in.jsonl -o out.jsonl
    """
    from cli.batch_run import run_batch

    code = run_batch(source, output, errors, url=url.rstrip("/"), api_key=api_key)
    raise typer.Exit(code)


@app.command("status")
def status_command(batch_id: _Id, url: _Url = DEFAULT_URL, api_key: _Key = None) -> None:
    """Say how far a batch is."""
    from cli.batch_service import get

    with make_client(url, api_key) as client:
        _print([get(client, batch_id)])


@app.command("cancel")
def cancel_command(batch_id: _Id, url: _Url = DEFAULT_URL, api_key: _Key = None) -> None:
    """End a batch; what was done is kept."""
    from cli.batch_service import cancel

    with make_client(url, api_key) as client:
        _print([cancel(client, batch_id)])


@app.command("list")
def list_command(
    limit: Annotated[int, typer.Option(min=1, max=100, help="newest first")] = 20,
    url: _Url = DEFAULT_URL,
    api_key: _Key = None,
) -> None:
    """List the batches of this key."""
    from cli.batch_service import newest

    with make_client(url, api_key) as client:
        _print(newest(client, limit))


def _print(batches: list[dict[str, Any]]) -> None:
    table = Table("batch", "status", "done", "failed", "of", "created", box=None, pad_edge=False)
    for batch in batches:
        counts = batch["request_counts"]
        created = datetime.fromtimestamp(batch["created_at"]).strftime("%Y-%m-%d %H:%M:%S")
        numbers = [str(counts[name]) for name in ("completed", "failed", "total")]
        table.add_row(batch["id"], batch["status"], *numbers, created)
    Console(width=120).print(table)
