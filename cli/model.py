"""``mini-vllm model``: fetch, list and describe models."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from cli.pull import has_model, pull
from shared.gguf_header import read_facts
from shared.models import KNOWN_MODELS, known_model, resolve_model
from shared.settings import Settings, load_settings

app = typer.Typer(no_args_is_help=True, help="Fetch, list and describe models.")


@app.command("pull")
def pull_command(
    name: Annotated[str, typer.Argument(help="a known model; `model list` shows them")] = "smollm2",
    quiet: Annotated[bool, typer.Option(help="say nothing if it is there already")] = False,
    if_known: Annotated[
        bool, typer.Option("--if-known", help="do nothing for a file or name of your own")
    ] = False,
) -> None:
    """Fetch a known model and verify it.

    Example: mini-vllm model pull smollm2
    """
    if if_known and name not in KNOWN_MODELS:
        print(f"{name} is none of the known models ({', '.join(KNOWN_MODELS)}): nothing to fetch")
        return
    model, model_dir = known_model(name), load_settings().model_dir
    path = model_dir / model.file_name
    if has_model(model, model_dir):
        if not quiet:
            print(f"{name} is here and whole: {path}")
        return
    pull(model, model_dir)
    print(f"{name}: {path} ({model.size_bytes / 1e6:.0f} MB, checksum right, {model.license})")


@app.command("list")
def list_command() -> None:
    """List the known models and the GGUF files in the model directory."""
    model_dir = load_settings().model_dir
    table = Table("name", "size", "here", "what", box=None, pad_edge=False)
    for model in KNOWN_MODELS.values():
        is_here = (model_dir / model.file_name).is_file()
        size = f"{model.size_bytes / 1e6:.0f} MB"
        table.add_row(model.name, size, "yes" if is_here else "no", model.description)
    known_files = {model.file_name for model in KNOWN_MODELS.values()}
    for path in sorted(model_dir.glob("*.gguf")):
        if path.name not in known_files:
            table.add_row(path.stem, f"{path.stat().st_size / 1e6:.0f} MB", "yes", str(path))
    Console().print(table)
    print(f"\nmodel directory: {model_dir}")


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


def describe(path: Path) -> list[tuple[str, str]]:
    facts = read_facts(path)
    kv_bytes = facts.kv_bytes_per_token
    context_mb = kv_bytes * facts.context_tokens / 1e6
    return [
        ("file", str(path)),
        ("size", f"{facts.size_bytes / 1e6:.0f} MB"),
        ("name", facts.title or "-"),
        ("architecture", facts.architecture),
        ("quantization", quantization_name(facts.fields.get("general.file_type"))),
        ("parameters", f"{facts.num_parameters / 1e6:.0f} M"),
        ("context", f"{facts.context_tokens} tokens"),
        ("layers", str(facts.num_layers)),
        ("embedding", str(facts.embedding_size)),
        ("KV cache", f"{kv_bytes} bytes per token as f16 ({context_mb:.0f} MB for its context)"),
        ("chat template", "yes" if facts.chat_template else "no"),
    ]


def quantization_name(file_type: int | None) -> str:
    # Takes 0.3 s (numpy), and only this one line needs it.
    from gguf import LlamaFileType

    try:
        name: str = LlamaFileType(file_type).name
    except ValueError:
        return "unknown"
    return name.removeprefix("MOSTLY_").removeprefix("ALL_")


def pull_if_missing(settings: Settings) -> None:
    """What `up` does first on a machine that has not seen the model."""
    known = KNOWN_MODELS.get(settings.model)
    if known and not (settings.model_dir / known.file_name).is_file():
        pull(known, settings.model_dir)
