"""The command line: what can be asked, and how what goes wrong is said. The doing is elsewhere."""

import hashlib
import logging
import os
import secrets
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import batch as batch_commands
from cli import cache as cache_commands
from cli import model as model_commands
from cli.bench.app import bench
from cli.jobs import commands as jobs_commands
from cli.top.command import top
from cli.tune import commands as tune_commands
from shared.errors import ServiceError
from shared.logs import begin_logging, say
from shared.settings import Settings, load_settings

EXIT_FAILED = 1

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="A dependable LLM service on CPUs: a gateway, a queue, and pinned llama.cpp workers.\n\n"
    'Start it with `mini-vllm up`, then try `mini-vllm generate "Explain gravity simply"`.\n\n'
    "Every setting can also be given as MINI_VLLM_<NAME> in the environment.",
)
app.add_typer(model_commands.app, name="model")
app.add_typer(jobs_commands.app, name="jobs")
app.add_typer(batch_commands.app, name="batch")
app.add_typer(cache_commands.app, name="cache")
app.command()(top)
app.command()(bench)
app.add_typer(tune_commands.app, name="tune")


def _default(field: str) -> Any:
    return Settings.model_fields[field].get_default(call_default_factory=True)


@app.command()
def up(
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="default: MINI_VLLM_WORKERS, else one per usable core, as memory allows"
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="per worker; default: cores // workers")
    ] = None,
    model: Annotated[str | None, typer.Option(help="smollm2, or the path of a GGUF file")] = None,
    host: Annotated[str | None, typer.Option(help=f"default: {_default('host')}")] = None,
    port: Annotated[
        int | None, typer.Option(help=f"default: {_default('port')}; 0 takes a free one")
    ] = None,
    redis_url: Annotated[
        str | None, typer.Option(help="a Redis 7+ or Valkey of yours; default: an embedded Valkey")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help=f"jobs and results; default: {_default('data_dir')}")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="listen beyond loopback without API keys")
    ] = False,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            help="clients at once that it is meant for: which of the records of `tune` is used; default: "
            f"{_default('tune_concurrency')}",
        ),
    ] = None,
    no_tune: Annotated[
        bool,
        typer.Option("--no-tune", help="neither measure this machine nor use what `tune` found"),
    ] = False,
) -> None:
    """Start everything on this machine and keep it running, until Ctrl-C.

    Prints one line `ready: http://HOST:PORT`. What dies is restarted and its jobs go on at the next
    token. Ctrl-C lets running jobs finish; jobs and results stay in the data directory.

    Example: mini-vllm up --workers 2 --threads 1 --port 9000
    """
    from cli import up as up_command

    begin_logging("up")
    given: dict[str, Any] = {"model": model, "host": host, "port": port, "redis_url": redis_url}
    given["data_dir"] = data_dir.absolute() if data_dir else None
    given["insecure"] = insecure or None
    given["tune"] = False if no_tune else None
    given["tune_concurrency"] = concurrency
    settings = load_settings(**{k: v for k, v in given.items() if v is not None})
    model_commands.pull_if_missing(settings)
    own_redis = redis_url is None and "MINI_VLLM_REDIS_URL" not in os.environ
    workers = workers or settings.workers or None
    up_command.run(settings, workers=workers, threads=threads, own_redis=own_redis)


@app.command()
def generate(
    prompt: Annotated[str, typer.Argument(help="the prompt; - reads it from standard input")],
    url: Annotated[
        str, typer.Option(envvar="MINI_VLLM_URL", help="the running service")
    ] = "http://127.0.0.1:8000",
    max_tokens: Annotated[int | None, typer.Option(help="default: 256")] = None,
    temperature: Annotated[float | None, typer.Option(help="default: 0.8; 0 is greedy")] = None,
    seed: Annotated[int | None, typer.Option(help="the same seed gives the same text")] = None,
    system: Annotated[str | None, typer.Option(help="a system message before the prompt")] = None,
    raw: Annotated[bool, typer.Option(help="continue the text as it is, without template")] = False,
    api_key: Annotated[
        str | None, typer.Option(envvar="MINI_VLLM_API_KEY", help="if the service needs one")
    ] = None,
    stats: Annotated[bool, typer.Option(help="say how many tokens, how fast, on stderr")] = False,
) -> None:
    """Send a prompt to a running service and print the answer as it comes.

    Example: mini-vllm generate "Explain gravity simply" --max-tokens 64 --stats
    """
    from cli.generate import generate as run_generate

    text = sys.stdin.read() if prompt == "-" else prompt
    body: dict[str, Any] = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed}
    body = {name: value for name, value in body.items() if value is not None}
    if system is not None:
        turns = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        body |= {"messages": turns}
    else:
        body |= {"prompt": text}
    if raw:
        body["raw"] = True
    run_generate(url, body, api_key=api_key, shows_stats=stats)


@app.command()
def key() -> None:
    """Make an API key: print it once for its user, and its hash for the service.

    The hash goes into MINI_VLLM_API_KEYS, or as a line into the file that MINI_VLLM_API_KEYS_FILE
    names (MINI_VLLM_ADMIN_KEYS and _FILE for admins), so that no file holds the key itself.
    """
    fresh = f"mv-{secrets.token_urlsafe(32)}"
    print(f"key:   {fresh}")
    print(f"hash:  sha256:{hashlib.sha256(fresh.encode()).hexdigest()}")


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def experiment(context: typer.Context) -> None:
    """Measure what makes inference fast on this machine: KV cache, threads, formats, batches.

    Example: mini-vllm experiment kv-cache --quick
    """
    from cli.experiment import become_experiment

    become_experiment(context.args)


@app.command()
def doctor(
    redis_url: Annotated[
        str | None, typer.Option(help="the Redis to look at; default: that of a running `up`")
    ] = None,
) -> None:
    """Say what is wrong with this machine or set-up, and what to do about it.

    Ends with code 1 if something has to be mended.
    """
    from cli.doctor import examine

    given = {} if redis_url is None else {"redis_url": redis_url}
    settings = load_settings(**given)
    if not examine(settings, is_redis_given=redis_url is not None):
        raise typer.Exit(EXIT_FAILED)


def main() -> None:
    try:
        app()
    except ServiceError as error:
        say(error.message, head="error: ", level=logging.CRITICAL)
        sys.exit(EXIT_FAILED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except OSError as error:  # a file or folder that the words above do not foresee
        say(str(error), head="error: ", level=logging.CRITICAL)
        sys.exit(EXIT_FAILED)


if __name__ == "__main__":
    main()
