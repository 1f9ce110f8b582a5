"""The commands of `mini-vllm experiment`. What an experiment does with its options is its own."""

from typing import Annotated

import typer

from experiments.batching.study import STUDY as BATCHING
from experiments.cache_complexity.study import STUDY as CACHE_COMPLEXITY
from experiments.frame.setting import parse_points
from experiments.kv_cache.study import STUDY as KV_CACHE
from experiments.layouts.study import STUDY as LAYOUTS
from experiments.options import (
    Compare,
    Given,
    Model,
    Out,
    Plots,
    Quick,
    Rounds,
    Threads,
    carry_out,
)
from experiments.prefix_cache.study import STUDY as PREFIX_CACHE
from experiments.quantization.study import STUDY as QUANTIZATION
from experiments.threads.study import STUDY as THREADS

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="What makes CPU inference fast, measured on this machine.\n\n"
    "Each experiment prints what it ran on, a table, a paragraph that says what it shows here, "
    "and as its "
    "last line JSON; it keeps the JSON and a plot (PNG, SVG). Ctrl-C keeps what was measured.",
)


@app.callback()
def _experiments() -> None:
    """Without it, a single command would take the place of all."""


@app.command("kv-cache")
def kv_cache(
    lengths: Annotated[
        str | None, typer.Option(help="tokens of answers; 10,25,50,100, of --quick 4,8,16,24")
    ] = None,
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    threads: Threads = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """The same greedy answer with the KV cache, and with everything recomputed for each token.

    Totals, time per token, the slowdown, and whether the tokens are the same.

    Example: mini-vllm experiment kv-cache --lengths 10,50
    """
    given = Given(model, quick, rounds, threads, out, compare, plots)
    setting = given.setting(points=parse_points(lengths, "--lengths"))
    raise typer.Exit(carry_out(KV_CACHE, setting, given))


@app.command("cache-complexity")
def cache_complexity(
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="the longest answer; 2048, of --quick 448")
    ] = None,
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    threads: Threads = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """What an answer costs by its length, with the KV cache and without: a + bN + cN² of each.

    Tokens processed and estimated floating point operations beside time, and where the curves leave the
    theory.

    Example: mini-vllm experiment cache-complexity --max-tokens 1024
    """
    given = Given(model, quick, rounds, threads, out, compare, plots)
    points = () if max_tokens is None else (max_tokens,)
    raise typer.Exit(carry_out(CACHE_COMPLEXITY, given.setting(points=points), given))


@app.command("threads")
def threads_command(
    threads: Annotated[
        str | None,
        typer.Option(help="numbers of threads, as 1,2,4; 1 to all cores, one more, twice as many"),
    ] = None,
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """Decode and prompt speed by number of threads, at rest and beside a busy neighbour.

    Says which share of the machine's measured read bandwidth decoding makes use of.

    Example: mini-vllm experiment threads --threads 1,2
    """
    given = Given(model, quick, rounds, None, out, compare, plots)
    setting = given.setting(points=parse_points(threads, "--threads"))
    raise typer.Exit(carry_out(THREADS, setting, given))


@app.command("batching")
def batching(
    sequences: Annotated[
        str | None, typer.Option(help="in a step, as 1,4,16; 1 to 32, of --quick 1 to 16")
    ] = None,
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    threads: Threads = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """Tokens per second and the time between tokens by the number of sequences, with the roofline.

    Example: mini-vllm experiment batching --sequences 1,2,4,8
    """
    given = Given(model, quick, rounds, threads, out, compare, plots)
    setting = given.setting(points=parse_points(sequences, "--sequences"))
    raise typer.Exit(carry_out(BATCHING, setting, given))


@app.command("prefix-cache")
def prefix_cache(
    prefixes: Annotated[
        str | None, typer.Option(help="tokens, as 64,512; 64 to 2048, of --quick 64 to 512")
    ] = None,
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    threads: Threads = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """Time to the first token of a prompt whose beginning is known: computed again, restored from a
    snapshot, still in the same slot.

    Example: mini-vllm experiment prefix-cache --prefixes 128,512
    """
    given = Given(model, quick, rounds, threads, out, compare, plots)
    setting = given.setting(points=parse_points(prefixes, "--prefixes"))
    raise typer.Exit(carry_out(PREFIX_CACHE, setting, given))


@app.command("layouts")
def layouts(
    clients: Annotated[
        int | None, typer.Option(min=1, help="that ask at once; 16, of --quick 8")
    ] = None,
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """One worker with all cores against one for each core, at rest and beside a busy neighbour.

    Example: mini-vllm experiment layouts --clients 8
    """
    given = Given(model, quick, rounds, None, out, compare, plots)
    points = () if clients is None else (clients,)
    raise typer.Exit(carry_out(LAYOUTS, given.setting(points=points), given))


@app.command("quantization")
def quantization(
    formats: Annotated[
        str | None,
        typer.Option(
            help="as bf16,q4_0; the model's own, f16, bf16, q8_0, q4_k_m, q4_0, iq4_nl; of --quick fewer"
        ),
    ] = None,
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    threads: Threads = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """Formats of one model: size, memory, load time, speed, perplexity, KL divergence; which to run.

    Copies are made as `model convert` makes them, and kept; `model rm --converted` removes them.

    Example: mini-vllm experiment quantization --formats bf16,q8_0
    """
    given = Given(model, quick, rounds, threads, out, compare, plots)
    names = tuple(part.strip() for part in formats.split(",")) if formats is not None else ()
    raise typer.Exit(carry_out(QUANTIZATION, given.setting(formats=names), given))


@app.command("all")
def all_command(
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    threads: Threads = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """Every experiment, and a report of them: report.html with its plots inside, report.md, report.json.

    Takes less than 15 minutes with the default model, with --quick less than 3. --compare takes the
    report.json of another machine, or of another run.

    Example: mini-vllm experiment all --quick
    """
    from experiments.whole import carry_out_all

    raise typer.Exit(carry_out_all(Given(model, quick, rounds, threads, out, compare, plots)))
