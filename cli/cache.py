"""``mini-vllm cache``: what was computed of prompts and is kept for others that begin alike."""

import json
import time
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from cli.cache_files import Snapshot, clear, limit_bytes, list_snapshots, snapshots_folder
from cli.durations import duration_text, parse_duration_s
from cli.job import DEFAULT_URL
from shared.settings import load_settings

app = typer.Typer(
    no_args_is_help=True,
    help="Look at, fill and empty the prefix cache.\n\n"
    "Workers keep what they compute of prompts as snapshots in the host directory (MINI_VLLM_HOST_DIR), "
    "for all workers of this host: a prompt that begins alike starts from there. `list` and `clear` look "
    "into that directory: run them on the host of the workers, with their settings.",
)


@app.command("warm")
def warm_command(
    source: Annotated[
        str, typer.Argument(metavar="FILE|-", help="the text; - reads it from standard input")
    ],
    url: Annotated[
        str, typer.Option(envvar="MINI_VLLM_URL", help="the running service")
    ] = DEFAULT_URL,
    api_key: Annotated[
        str | None,
        typer.Option(
            "--key", "--api-key", envvar="MINI_VLLM_API_KEY", help="whose jobs are to start from it"
        ),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="for the jobs of all keys; --key is an admin's then")
    ] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="prompts begin with it as it is, without template")
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="one of GET /v1/models; default: the service's own")
    ] = None,
) -> None:
    """Compute a system prompt ahead, so that the first chats with it need not wait for it.

    The service runs a job for it on one worker; all workers of that host start from what it stored. It is
    kept as long as it is used (MINI_VLLM_CACHE_TTL_S), and there is room.

    Example: mini-vllm cache warm system.txt --public --key "$ADMIN_KEY"
    """
    from cli.cache_warm import read_text, warm

    body: dict[str, Any] = {"text": read_text(source), "raw": raw, "public": public}
    if model is not None:
        body["model"] = model
    print(warm(url, body, api_key=api_key))


@app.command("list")
def list_command(
    as_json: Annotated[bool, typer.Option("--json", help="for programs")] = False,
) -> None:
    """Show what is kept on this host, what was used last first.

    Whose it is: `public` for all; `all` where no keys are set, or keys share; `key` for the jobs of one
    API key; `job` for one job that was parked, or is saved while it runs.
    """
    settings = load_settings()
    folder = snapshots_folder(settings)
    snapshots, limit = list_snapshots(folder), limit_bytes(settings)
    total = sum(snapshot.bytes for snapshot in snapshots)
    if as_json:
        rows = [asdict(snapshot) for snapshot in snapshots]
        print(json.dumps({"snapshots": rows, "total_bytes": total, "max_bytes": limit}, indent=1))
        return
    if snapshots:
        Console(width=100).print(_table(snapshots, time.time()))
    # Without a setting each worker settles it when it starts.
    now = "" if settings.cache_max_bytes else ", as memory is now"
    print(f"{len(snapshots)} snapshots, {_mb(total)} of at most {_mb(limit)} MB{now}, in {folder}")


@app.command("clear")
def clear_command(
    takes_all: Annotated[
        bool, typer.Option("--all", help="of jobs too, which compute it again then")
    ] = False,
    older_than: Annotated[
        str, typer.Option(metavar="TIME", help="unused for so long, like 90s, 30m, 2h or 1d")
    ] = "0s",
) -> None:
    """Remove what is kept on this host, beside workers that run: a job that has begun is not disturbed.

    What single jobs go on from (parked ones, checkpoints of running ones) is left, unless with --all.

    Example: mini-vllm cache clear --older-than 30m
    """
    try:
        older_than_s = parse_duration_s(older_than)
    except ValueError as error:
        raise typer.BadParameter(f"--older-than: {error}") from None
    folder = snapshots_folder(load_settings())
    removed = clear(folder, older_than_s=older_than_s, takes_jobs=takes_all)
    freed = sum(snapshot.bytes for snapshot in removed)
    print(f"{len(removed)} snapshots removed from {folder}, {_mb(freed)} MB")


def _table(snapshots: list[Snapshot], now_s: float) -> Table:
    table = Table("model", "kind", "of", box=None, pad_edge=False)
    for heading in ("tokens", "MB", "last used"):
        table.add_column(heading, justify="right")
    for snapshot in snapshots:
        _, _, whose = snapshot.scope.partition(":")
        table.add_row(
            snapshot.fingerprint[:8],
            snapshot.kind,
            whose[:8],
            str(snapshot.tokens),
            _mb(snapshot.bytes),
            f"{duration_text(snapshot.unused_s(now_s))} ago",
        )
    return table


def _mb(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:.1f}"
