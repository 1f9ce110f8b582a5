"""What can be asked of jobs, and in which words. The doing is elsewhere."""

import io
import json
import sys
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from cli.job import DEFAULT_URL
from cli.service import RequestFailed, make_client
from shared.protocol import JobStatus

EXIT_FAILED = 1
#: Where the width is nobody's.
_WIDTH_CHARS = 120

app = typer.Typer(
    no_args_is_help=True,
    help="Look at the jobs of a running service, follow them and cancel them.\n\n"
    "Those of your key; with an admin key, or where no keys are set, all. An ID may be the first 4 or more "
    "characters of it (8 or more to cancel), as long as no other of the newest jobs begins alike.",
)

_Url = Annotated[str, typer.Option(envvar="MINI_VLLM_URL", help="the running service")]
_Key = Annotated[
    str | None, typer.Option(envvar="MINI_VLLM_API_KEY", help="if the service needs one")
]
_Json = Annotated[bool, typer.Option("--json", help="for programs")]
_Id = Annotated[str, typer.Argument(metavar="ID", help="or its beginning; `jobs list` shows them")]


@app.command("list")
def list_command(
    limit: Annotated[int, typer.Option(min=1, max=2000, help="newest first")] = 20,
    status: Annotated[
        list[JobStatus] | None, typer.Option(help="only those; may be repeated")
    ] = None,
    as_json: _Json = False,
    url: _Url = DEFAULT_URL,
    api_key: _Key = None,
) -> None:
    """List jobs, newest first.

    tokens: of the prompt and of the answer. waited: until a worker took it. total: until its end, or now.

    Example: mini-vllm jobs list --status running --status queued
    """
    from cli.jobs.service import MAX_SCANNED_JOBS, list_jobs
    from cli.jobs.tables import jobs_table

    with make_client(url, api_key) as client:
        jobs = list_jobs(client, limit, [one.value for one in status or ()])
    if as_json:
        print(json.dumps({"jobs": jobs}, indent=1))
    elif jobs:
        _console().print(jobs_table(jobs, time.time()))
    elif status:
        wanted = " or ".join(one.value for one in status)
        print(f"no job is {wanted}, of the newest {MAX_SCANNED_JOBS:,}", file=sys.stderr)
    else:
        print('no jobs; submit one: mini-vllm generate "Explain gravity simply"', file=sys.stderr)


@app.command("show")
def show_command(
    job_id: _Id, as_json: _Json = False, url: _Url = DEFAULT_URL, api_key: _Key = None
) -> None:
    """Show all that is known of a job, and its text so far.

    Its time as a bar: · it waited, ▒ its prompt was computed, █ its tokens were.

    Example: mini-vllm jobs show 4b355c02
    """
    from cli.job_timeline import marks_for
    from cli.jobs.service import find_id, get
    from cli.jobs.tables import job_facts
    from cli.printable import printable

    with make_client(url, api_key) as client:
        job = get(client, find_id(client, job_id))
    if as_json:
        print(json.dumps(job, indent=1))
        return
    console = _console()
    console.print(job_facts(job, time.time(), marks_for(console.encoding)))
    if job["text"]:
        # Lines are the terminal's to break: in a file they are the model's.
        console.print(Text("\n" + printable(job["text"])), soft_wrap=True)


@app.command("tail")
def tail_command(job_id: _Id, url: _Url = DEFAULT_URL, api_key: _Key = None) -> None:
    """Print the text of a job: what there is, and the rest as it comes.

    Goes on at the same token after an outage of the service, of up to a minute. Ctrl-C leaves the job
    running.

    Ends with code 0 if the job completed, 1 if it failed or was cancelled, 130 after Ctrl-C.

    Example: mini-vllm jobs tail 4b355c02
    """
    from cli.jobs.service import find_id
    from cli.jobs.tail import tail

    with make_client(url, api_key) as client:
        tail(client, find_id(client, job_id))


@app.command("cancel")
def cancel_command(
    job_ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="or their beginnings; one or more")
    ],
    url: _Url = DEFAULT_URL,
    api_key: _Key = None,
) -> None:
    """Cancel jobs; the text so far is kept.

    A worker looks after each step. One that has ended already is left as it is. Ends with code 1 if one of
    them is not there; the others are cancelled all the same.

    Example: mini-vllm jobs cancel 4b355c02 9ad1f00e
    """
    from cli.jobs.outcome import outcome_of
    from cli.jobs.service import MIN_CANCEL_CHARS, cancel, find_id, get

    num_failed = 0
    with make_client(url, api_key) as client:
        for given in job_ids:
            try:
                job_id = find_id(client, given, MIN_CANCEL_CHARS)
                had_ended = bool(get(client, job_id)["ended_at"])
                print(outcome_of(cancel(client, job_id), had_ended=had_ended))
            except RequestFailed as error:
                num_failed += 1
                # One that is not there says nothing of which it was.
                which = "" if given[:40] in error.message else f"{given[:40]}: "
                print(f"error: {which}{error.message}", file=sys.stderr)
    if num_failed:
        raise typer.Exit(EXIT_FAILED)


def _console() -> Console:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not know every character
    return Console(width=None if sys.stdout.isatty() else _WIDTH_CHARS, highlight=False)
