"""The options of `mini-vllm bench`. What they mean together is checked in cli/bench/options.py."""

from pathlib import Path
from typing import Annotated

import typer

_MAX_TOKENS = 1_000_000


def bench(
    url: Annotated[
        list[str] | None,
        typer.Option(help="a server of OpenAI's API, or NAME=URL; may be repeated"),
    ] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(help="a server to compare the first --url with; may be repeated"),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(help="random (default), shared-prefix, chat, long, or trace with --trace"),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines: time_s, output_tokens, and prompt, messages or prompt_tokens"
        ),
    ] = None,
    prompt_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=_MAX_TOKENS,
            help="of a prompt (64), its end after the prefix (24), a turn (32), the long one (2000)",
        ),
    ] = None,
    output_tokens: Annotated[
        int | None, typer.Option(min=1, max=_MAX_TOKENS, help="of an answer: 64, of `long` 16")
    ] = None,
    prefix_tokens: Annotated[
        int | None,
        typer.Option(min=1, max=_MAX_TOKENS, help="of `shared-prefix`: what all share; 500"),
    ] = None,
    turns: Annotated[
        int | None, typer.Option(min=1, max=1000, help="of `chat`: of a conversation; 4")
    ] = None,
    concurrency: Annotated[
        str | None,
        typer.Option(
            help="clients that wait for their answers, several as 1,4,16; 16, of `chat` 8; "
            "of `long` the running streams: 7"
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(help="instead: requests a second (of `chat` conversations), several as 1,2,4"),
    ] = None,
    burstiness: Annotated[
        float | None,
        typer.Option(help="of --rate: 1 is Poisson; less comes in bursts, more is regular"),
    ] = None,
    duration: Annotated[
        str | None, typer.Option(help="begin requests for so long, as 30s or 2m")
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option(
            min=1, max=1_000_000, help="instead: in all, for each load; two for each client"
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option(min=1, max=1000, help="each measures every load on every server")
    ] = 1,
    quiet: Annotated[
        str | None, typer.Option(help="of `long`: streams run so long before the prompt; 5s")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, max=2**32 - 1, help="of the prompts; a server that has seen them has them cached"
        ),
    ] = None,
    slo: Annotated[
        str | None,
        typer.Option(help="counts goodput: ttft:500ms,tpot:50ms,itl:100ms (each gap),e2e:5s"),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="as the servers call it; default: the only one they have")
    ] = None,
    key: Annotated[
        str | None, typer.Option(envvar="MINI_VLLM_API_KEY", help="an API key, if they need one")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="a folder for result.json and plots (PNG, SVG)")
    ] = None,
    plots: Annotated[bool, typer.Option(help="draw plots into --out; needs matplotlib")] = True,
) -> None:
    """Measure any server of OpenAI's API, or compare several, as its clients see it.

    Reports what `vllm bench serve` reports, with its definitions. Servers are measured in turn, round
    by round, on the same prompts; ratios are of the first server to the others. The last line of the
    output is JSON. Ctrl-C reports what was measured so far.

    Ends with code 1 if a server answered nothing or it ended early, 130 after Ctrl-C.

    Example: mini-vllm bench --url http://127.0.0.1:8000 --concurrency 1,4,16 --out bench
    """
    from cli.bench.command import run_bench
    from cli.bench.options import Given

    given = Given(
        url=url or [],
        compare=compare or [],
        workload=workload,
        trace=trace,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        prefix_tokens=prefix_tokens,
        turns=turns,
        concurrency=concurrency,
        rate=rate,
        burstiness=burstiness,
        duration=duration,
        requests=requests,
        rounds=rounds,
        seed=seed,
        quiet=quiet,
        slo=slo,
        model=model,
        key=key,
        out=out,
    )
    raise typer.Exit(run_bench(given, has_plots=plots))
