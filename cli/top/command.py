"""What can be asked of `mini-vllm top`, and in which words."""

import sys
from typing import Annotated

import typer

from cli.job import DEFAULT_URL


def top(
    url: Annotated[
        str, typer.Option(envvar="MINI_VLLM_URL", help="the running service")
    ] = DEFAULT_URL,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="MINI_VLLM_API_KEY", help="if the service needs one; an admin's shows all"
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="print it once and end; so does a pipe")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="for programs: what is known now, once")
    ] = False,
) -> None:
    """Watch a running service: whether users wait, why, and what to do.

    Shows workers, the queue with the wait that is expected, tokens a second and times to the first token
    (TTFT: median, and what 1 of 100 exceeds) of the last hour, and the newest jobs with what their time
    went into: · they waited, ▒ their prompt was computed, █ their tokens were. It is what the dashboard
    shows, and goes on after a restart of the gateway. Ctrl-C ends it.

    Example: mini-vllm top --url http://the-server:8000 --api-key "$ADMIN_KEY"
    """
    from cli.top.run import show_once, watch

    if once or as_json or not sys.stdout.isatty():
        show_once(url, api_key, as_json=as_json)
    else:
        watch(url, api_key)
