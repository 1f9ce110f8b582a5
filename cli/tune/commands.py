"""The command group `mini-vllm tune`: its options; the doing is elsewhere."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from cli.tune.decision import Limits, Objective
from cli.tune.formats import FormatChoice
from cli.tune.options import parse_budget_s, parse_size, read_shapes
from cli.tune.trials import Load
from shared.errors import BadRequest
from shared.models import resolve_model
from shared.settings import load_settings
from shared.trials import RequestShape
from shared.tuning import clear_records, read_records, tune_key

app = typer.Typer()

_Model = Annotated[str | None, typer.Option(help="a known name or the path of a GGUF file")]
_Prompt = Annotated[int, typer.Option(min=1, max=65_536, help="of a request")]
_Output = Annotated[int, typer.Option(min=1, max=65_536, help="of a request")]


@app.callback(invoke_without_command=True)
def tune(
    context: typer.Context,
    model: _Model = None,
    concurrency: Annotated[int, typer.Option(min=1, max=1024, help="clients at once")] = 16,
    prompt_tokens: _Prompt = 64,
    output_tokens: _Output = 64,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="requests instead: JSON lines as of `bench`, with prompt_tokens and output_tokens"
        ),
    ] = None,
    objective: Annotated[Objective, typer.Option(help="what is wanted most")] = "throughput",
    memory: Annotated[
        str | None, typer.Option(help="what all workers may take together, like 8G")
    ] = None,
    formats: Annotated[
        FormatChoice,
        typer.Option(help="as-is, upcast (same quality, more memory), any (also lossy ones)"),
    ] = "upcast",
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="only what gives the same tokens in any batch")
    ] = False,
    budget: Annotated[str, typer.Option(help="wall time for all of it, like 120s or 10m")] = "120s",
    plot: Annotated[Path | None, typer.Option(help="a picture, FILE.svg or FILE.png")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="keep no record")] = False,
) -> None:
    """Measure which format, layout and slots this machine runs best; `up` then uses it.

    Weight formats, layouts of workers and threads, slots and prompt chunks are tried under a load.
    Ctrl-C decides with what was measured until then. The last line is JSON.

    Example: mini-vllm tune --concurrency 16 --objective throughput --budget 2m
    """
    if context.invoked_subcommand:
        _refuse_given(context)
        return
    from cli.tune.plot import check_plot
    from cli.tune.run import Wish
    from cli.tune.run import tune as run_tune

    shapes: tuple[RequestShape, ...] = (
        RequestShape(prompt_tokens=prompt_tokens, output_tokens=output_tokens),
    )
    if trace:
        for name in ("prompt_tokens", "output_tokens"):
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                raise BadRequest(
                    f"--{name.replace('_', '-')} and --trace: give one of them", field=name
                )
        shapes = read_shapes(trace)
    wish = Wish(
        load=Load(concurrency, shapes),
        limits=Limits(
            objective,
            None if memory is None else parse_size(memory, "memory"),
            deterministic=deterministic,
        ),
        formats=formats,
        budget_s=parse_budget_s(budget),
        plot=plot,
        keeps=not dry_run,
    )
    if plot:
        check_plot(plot)
    run_tune(load_settings(**_given(model)), wish)


@app.command()
def show(model: _Model = None) -> None:
    """List what was chosen, for which machine and load; * is what `up` uses here."""
    from shared.tuning import find_record

    settings = load_settings(**_given(model))
    path = resolve_model(settings.model, settings.model_dir).path
    key = tune_key(path, settings.model_dir)
    used = find_record(settings.model_dir, key, settings.tune_concurrency)
    table = Table(
        *("", "model", "kind", "made (UTC)", "clients", "objective", "choice", "tok/s"),
        box=None,
        pad_edge=False,
    )
    num_shown = 0
    for file, record, problem in read_records(settings.model_dir):
        if record is None:
            print(f"{file}: cannot be read: {problem}")
            continue
        if model and record.key.model_sha256 != key.model_sha256:
            continue
        num_shown += 1
        speed = record.figures.get("output_tokens_per_s") or 0
        table.add_row(
            "*" if record == used.record else "",
            record.model,
            record.kind,
            datetime.fromtimestamp(record.made_at, UTC).strftime("%Y-%m-%d %H:%M"),
            str(record.concurrency),
            record.objective,
            record.choice,
            f"{speed:.0f}",
        )
    if num_shown:
        Console(highlight=False, soft_wrap=True).print(table)
    else:
        print("no records; `mini-vllm tune` makes one")
    for remark in used.remarks:
        print(remark)


@app.command()
def clear(
    model: _Model = None,
    every: Annotated[bool, typer.Option("--all", help="of all models")] = False,
) -> None:
    """Remove the records of a model, of all machines: `up` then measures anew."""
    settings = load_settings(**_given(model))
    sha256 = None
    if not every:
        path = resolve_model(settings.model, settings.model_dir).path
        sha256 = tune_key(path, settings.model_dir).model_sha256
    gone = clear_records(settings.model_dir, sha256)
    for path in gone:
        print(f"removed {path}")
    if not gone:
        print("there was none")


@app.command()
def threads(
    model: _Model = None,
    concurrency: Annotated[int, typer.Option(min=1, max=128, help="sequences at once")] = 8,
    prompt_tokens: _Prompt = 64,
    output_tokens: _Output = 64,
) -> None:
    """One worker with 1 to all cores: how fast it decodes and reads prompts. The last line is JSON."""
    from cli.tune.threads import tune_threads

    shape = RequestShape(prompt_tokens=prompt_tokens, output_tokens=output_tokens)
    tune_threads(load_settings(**_given(model)), Load(concurrency, (shape,)))


def _refuse_given(context: typer.Context) -> None:
    """`tune --model X clear` would clear the records of another model than X."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = f"--{name.replace('_', '-')}"
            told = f"stands before `{context.invoked_subcommand}`, which does not see it there"
            raise BadRequest(f"{option}: {told}; give it after, if it has it", field=name)


def _given(model: str | None) -> dict[str, Any]:
    return {} if model is None else {"model": model}
