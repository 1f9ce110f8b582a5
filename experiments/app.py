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
    "and as its last line JSON; it keeps the JSON and a plot. One takes up to 3 minutes with the "
    "default model. Let nothing else run meanwhile: a noisy run says so. Ctrl-C keeps what was "
    "measured.\n\n"
    "Begin with: mini-vllm experiment kv-cache --quick",
)


@app.callback()
def _experiments() -> None:
    """Without it, a single command would take the place of all."""


@app.command("kv-cache")
def kv_cache(
    lengths: Annotated[
        str | None,
        typer.Option(help="tokens of the answers; default: 10,25,50,100, with --quick 4,8,16,24"),
    ] = None,
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    threads: Threads = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """What the KV cache saves for the same answer.

    The keys and values of all tokens before it are kept for the next token, or everything is computed
    again for each. The same greedy answer in both ways: totals, time per token, and the slowdown.

    Example: mini-vllm experiment kv-cache --lengths 10,50
    """
    given = Given(model, quick, rounds, threads, out, compare, plots)
    setting = given.setting(points=parse_points(lengths, "--lengths"))
    raise typer.Exit(carry_out(KV_CACHE, setting, given))


@app.command("cache-complexity")
def cache_complexity(
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="of the longest answer; default: 2048, with --quick 448"),
    ] = None,
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    threads: Threads = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """How the cost of an answer grows with its length.

    Theory says a line with the KV cache and a square without. Both are measured and fitted with
    a + bN + cN²; tokens processed and estimated floating point operations stand beside the time, and it
    says where the curves leave the theory.

    Example: mini-vllm experiment cache-complexity --max-tokens 1024
    """
    given = Given(model, quick, rounds, threads, out, compare, plots)
    points = () if max_tokens is None else (max_tokens,)
    raise typer.Exit(carry_out(CACHE_COMPLEXITY, given.setting(points=points), given))


@app.command("threads")
def threads_command(
    threads: Annotated[
        str | None,
        typer.Option(
            help="numbers to try, as 1,2,4; default: 1 to all cores, one more, and twice as many"
        ),
    ] = None,
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """How many threads, alone and beside a neighbour.

    Tokens per second of decoding (one token after the other) and of prompts (many at once), while the
    machine is at rest and while another process wants one of the cores. Says which share of the
    machine's measured read bandwidth decoding makes use of.

    Example: mini-vllm experiment threads --threads 1,2
    """
    given = Given(model, quick, rounds, None, out, compare, plots)
    setting = given.setting(points=parse_points(threads, "--threads"))
    raise typer.Exit(carry_out(THREADS, setting, given))


@app.command("batching")
def batching(
    sequences: Annotated[
        str | None,
        typer.Option(help="how many in a step, as 1,4,16; default: 1 to 32, with --quick 1 to 16"),
    ] = None,
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    threads: Threads = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """What more sequences in a step win, and what each pays.

    A step reads the weights once for all its sequences. Tokens per second of all and the time between
    two tokens of one, beside the roofline: what memory and kernels allow at best.

    Example: mini-vllm experiment batching --sequences 1,2,4,8
    """
    given = Given(model, quick, rounds, threads, out, compare, plots)
    setting = given.setting(points=parse_points(sequences, "--sequences"))
    raise typer.Exit(carry_out(BATCHING, setting, given))


@app.command("prefix-cache")
def prefix_cache(
    prefixes: Annotated[
        str | None,
        typer.Option(help="their tokens, as 64,512; default: 64 to 2048, with --quick 64 to 512"),
    ] = None,
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    threads: Threads = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """What it saves that the beginning of a prompt is known.

    Time to the first token when that beginning (a system prompt, say) is computed again, restored from
    a snapshot in memory, or still in the slot that computed it; and that the tokens are the same.

    Example: mini-vllm experiment prefix-cache --prefixes 128,512
    """
    given = Given(model, quick, rounds, threads, out, compare, plots)
    setting = given.setting(points=parse_points(prefixes, "--prefixes"))
    raise typer.Exit(carry_out(PREFIX_CACHE, setting, given))


@app.command("layouts")
def layouts(
    clients: Annotated[
        int | None, typer.Option(min=1, help="that ask at once; default: 16, with --quick 8")
    ] = None,
    model: Model = None,
    quick: Quick = False,
    rounds: Rounds = None,
    out: Out = None,
    compare: Compare = None,
    plots: Plots = True,
) -> None:
    """One worker with all cores, or one for each core.

    The same clients ask both: tokens per second, time to the first token and between tokens, and memory,
    at rest and while another process wants one of the cores.

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
            help="of the weights, as bf16,q4_0; default: the model's own, f16, bf16, q8_0, q4_k_m, q4_0, "
            "iq4_nl, with --quick the model's own, bf16, q4_0"
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
    """Which weight format to run, and what it loses.

    Size, memory, load time and speed of each format of one model, alone and with many sequences;
    perplexity (less is better) and KL divergence (0: nothing lost) say what it loses. Copies are made as
    `model convert` makes them, and kept; `model rm --converted` removes them.

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
    """All of them, and a report: one page with all plots.

    Writes report.html, which needs no file beside it, report.md and report.json. Takes less than 15
    minutes with the default model, with --quick less than 3. --compare takes the report.json of another
    machine, or of another run.

    Example: mini-vllm experiment all --quick
    """
    from experiments.whole import carry_out_all

    raise typer.Exit(carry_out_all(Given(model, quick, rounds, threads, out, compare, plots)))
