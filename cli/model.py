"""``mini-vllm model``: fetch, convert, list, describe and remove models."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from cli.convert import convert
from cli.fetch_hub import fetch_hub
from cli.fetch_url import fetch_url, raise_if_other
from cli.model_facts import describe
from cli.model_files import ModelFile, copies, copies_of, model_files, removable, users_of
from cli.progress import byte_progress
from cli.pull import has_model, make_directory, pull
from cli.sources import HubFile, UrlFile, parse_source
from shared.converted import weights_path
from shared.errors import SetupError
from shared.gguf_header import read_facts
from shared.models import KNOWN_MODELS, KnownModel, resolve_model
from shared.settings import Settings, load_settings
from shared.weight_formats import WEIGHT_FORMATS, known_format, loss_note

app = typer.Typer(no_args_is_help=True, help="Fetch, convert, list, describe and remove models.")


@app.command("pull")
def pull_command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="NAME|hf:OWNER/REPO/FILE.gguf|URL",
            help="a known model (`model list` shows them), a file of the Hugging Face Hub, or a URL, "
            "to which #sha256=HEX may be added",
        ),
    ] = "smollm2",
    quiet: Annotated[bool, typer.Option(help="say nothing if it is there already")] = False,
    if_known: Annotated[
        bool, typer.Option("--if-known", help="do nothing for a file or name of your own")
    ] = False,
) -> None:
    """Fetch a model into the model directory and verify it.

    What was interrupted goes on where it ended, from the Hub and from servers that can (Range). The Hub's own
    variables hold: HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE.

    Example: mini-vllm model pull hf:OWNER/REPO/model-q4_0.gguf
    """
    if if_known and source not in KNOWN_MODELS:
        print(f"{source} is none of the known models ({', '.join(KNOWN_MODELS)}): nothing to fetch")
        return
    wanted, model_dir = parse_source(source), load_settings().model_dir
    if isinstance(wanted, KnownModel):
        _pull_known(wanted, model_dir, quiet=quiet)
        return
    make_directory(model_dir)
    target = model_dir / wanted.name
    if target.exists():
        raise_if_other(wanted, target)
        if not quiet:
            print(
                f"{target} is here already; `mini-vllm model rm {target.stem}` makes room for another"
            )
        return
    if isinstance(wanted, HubFile):
        path = fetch_hub(wanted, model_dir)
    else:
        with byte_progress(f"fetching {wanted.name}") as show:
            path = fetch_url(wanted, model_dir, progress=show)
    checked = ", checksum right" if isinstance(wanted, UrlFile) and wanted.sha256 else ""
    print(f"{path} ({_mb(path.stat().st_size)}{checked})")
    print(f"try it with: mini-vllm up --model {path.stem}")


def _pull_known(model: KnownModel, model_dir: Path, *, quiet: bool) -> None:
    path = model_dir / model.file_name
    if has_model(model, model_dir):
        if not quiet:
            print(f"{model.name} is here and whole: {path}")
        return
    pull(model, model_dir)
    print(f"{model.name}: {path} ({_mb(model.size_bytes)}, checksum right, {model.license})")


@app.command("prepare")
def prepare_command() -> None:
    """Do what workers need before they start, as `up` does: what runs first in containers.

    Fetches MINI_VLLM_MODEL if it is a known one, makes its copy in MINI_VLLM_WEIGHT_FORMAT, and, where there
    is no record of `tune`, measures formats for up to 10 s: for MINI_VLLM_WORKERS on the cores that are
    usable here, which are to be those of the workers. MINI_VLLM_TUNE=0 measures nothing.
    """
    from cli.prepare import prepare

    prepare(load_settings())


@app.command("list")
def list_command() -> None:
    """List the known models, the GGUF files in the model directory, and their converted copies."""
    model_dir = load_settings().model_dir
    table = Table("name", "format", "size", "here", "what", box=None, pad_edge=False)
    here = {file.path.name: file for file in model_files(model_dir)}
    left = copies(model_dir)

    def add_copies(source: ModelFile) -> None:
        for copy in copies_of(source.path, model_dir):
            left.remove(copy)
            what = f"converted copy of {source.name}"
            table.add_row(f"  as {copy.format}", copy.format, _mb(copy.size_bytes), "yes", what)

    for model in KNOWN_MODELS.values():
        file = here.pop(model.file_name, None)
        shape = file.format if file else "-"
        row = model.name, shape, _mb(model.size_bytes), "yes" if file else "no", model.description
        table.add_row(*row)
        if file:
            add_copies(file)
    for file in here.values():
        table.add_row(file.name, file.format, _mb(file.size_bytes), "yes", str(file.path))
        add_copies(file)
    for copy in left:
        what = f"converted copy of a {copy.source}.gguf that is not here"
        table.add_row(copy.name, copy.format, _mb(copy.size_bytes), "yes", what)
    Console(soft_wrap=True).print(table)
    print(f"\nmodel directory: {model_dir}")


@app.command("convert")
def convert_command(
    model: Annotated[str, typer.Argument(help="a known name or the path of a GGUF file")],
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help=", ".join(WEIGHT_FORMATS))],
) -> None:
    """Make a copy of a model in another weight format, beside the models.

    Workers load it with MINI_VLLM_WEIGHT_FORMAT=FORMAT. Upcasts (of a quantized file to bf16, f16) keep the
    quality and may be several times faster; other formats lose some: `model verify` says how much.

    Example: mini-vllm model convert smollm2 --to bf16
    """
    wanted, model_dir = known_format(to, "--to"), load_settings().model_dir
    source = resolve_model(model, model_dir).path
    with byte_progress(f"converting to {wanted.name}") as show:
        path = convert(source, wanted.name, model_dir, progress=show)
    if path == source:
        print(f"{model} is {wanted.name} as it is: {path}")
        return
    note = loss_note(read_facts(source).file_type or 0, wanted.name)
    print(f"{model} as {wanted.name}: {path} ({_mb(path.stat().st_size)}; {note})")


@app.command("verify")
def verify_command(
    a: Annotated[str, typer.Argument(metavar="A", help="a known name or the path of a GGUF file")],
    b: Annotated[
        str, typer.Argument(metavar="B", help="another one, or a weight format: A's converted copy")
    ],
    text: Annotated[
        Path | None, typer.Option(metavar="FILE", help="default: English that Python comes with")
    ] = None,
    chunks: Annotated[int, typer.Option(min=1, help="windows of 512 tokens")] = 20,
) -> None:
    """Compare two formats of a model: perplexity, KL divergence, how often the likeliest token is the same.

    As llama-perplexity does it: windows of 512 tokens, of which the second half is scored. The last line is
    JSON.

    Example: mini-vllm model verify smollm2 bf16
    """
    from cli.verify import verify

    model_dir = load_settings().model_dir
    first = resolve_model(a, model_dir)
    is_format = b.lower() in WEIGHT_FORMATS
    second = (
        weights_path(first, b.lower(), model_dir) if is_format else resolve_model(b, model_dir).path
    )
    verify(first.path, second, text, chunks)


@app.command("rm")
def rm_command(
    model: Annotated[
        str | None, typer.Argument(help="a name that `model list` shows, or a path")
    ] = None,
    converted: Annotated[
        bool, typer.Option("--converted", help="only converted copies: of this model, or all")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
) -> None:
    """Remove a model with its converted copies, or copies only, from the model directory.

    Example: mini-vllm model rm smollm2 --converted
    """
    if model is None and not converted:
        raise typer.BadParameter("say which model, or --converted for all converted copies")
    model_dir = load_settings().model_dir
    files = removable(model, model_dir, only_copies=converted)
    if not files:
        print(f"there is nothing to remove in {model_dir}")
        return
    users = users_of(files)
    if users:
        raise SetupError(
            f"process {', '.join(map(str, users))} of this machine has it loaded; stop it first"
        )
    for file in files:
        print(f"{_mb(file.size_bytes):>9}  {file.path}")
    total = _mb(sum(file.size_bytes for file in files))
    if not yes:
        typer.confirm(f"remove {len(files)} files, {total}?", abort=True)
    for file in files:
        file.path.unlink(missing_ok=True)
    print(f"{len(files)} files removed, {total} freed")


@app.command("info")
def info_command(
    model: Annotated[str, typer.Argument(help="a known name or the path of a GGUF file")],
    template: Annotated[bool, typer.Option(help="show how the chat template begins")] = False,
) -> None:
    """Describe a model: architecture, quantization, parameters, context, memory, chat template.

    Example: mini-vllm model info ./my-model.gguf --template
    """
    path = resolve_model(model, load_settings().model_dir).path
    for name, value in describe(path):
        print(f"{name:<18}{value}")
    if template:
        lines = (read_facts(path).chat_template or "").splitlines()
        print("\n" + "\n".join(lines[:20]) if lines else "\nno chat template")


def _mb(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:.0f} MB"


def pull_if_missing(settings: Settings) -> None:
    """What `up` does first on a machine that has not seen the model."""
    known = KNOWN_MODELS.get(settings.model)
    if known and not (settings.model_dir / known.file_name).is_file():
        pull(known, settings.model_dir)
