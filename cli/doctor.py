"""`mini-vllm doctor`: runs the checks, prints what they found, and how to look at the queues."""

from collections.abc import Iterator

from rich.console import Console

from cli import findings
from cli.cache_findings import check_cache
from cli.findings import Finding
from shared.redis_url import shown_url
from shared.settings import Settings

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def examine(settings: Settings, *, is_redis_given: bool) -> bool:
    """Whether nothing has to be mended."""
    running = findings.running_service(settings.data_dir)
    redis_url = settings.redis_url if is_redis_given else running and str(running["redis_url"])

    def all_findings() -> Iterator[Finding]:
        yield from findings.check_software()
        yield from findings.check_cpu()
        yield from findings.check_memory()
        yield from findings.check_model(settings)
        yield from findings.check_directories(settings)
        yield from check_cache(settings)
        yield from findings.check_service(running)
        if redis_url:
            yield from findings.check_redis(redis_url)

    console = Console(highlight=False, soft_wrap=True)
    is_well = True
    for finding in all_findings():
        is_well = is_well and finding.level != "fail"
        colour = _COLOURS[finding.level]
        console.print(f"[{colour}]{finding.level:>4}[/]  ", end="")
        console.print(finding.what, markup=False)
        if finding.todo:
            console.print(f"      -> {finding.todo}", markup=False)
    if redis_url:
        console.print("\nRQ's own view of queues and workers:", markup=False)
        shown = shown_url(redis_url)  # what is printed here is pasted into reports
        command = f"rq info -u '{shown}' -S json -j shared.rq_job.GenerateJob"
        console.print(f"      {command}", markup=False)
        if shown != redis_url:
            console.print("      (put the password in place of ***)", markup=False)
    return is_well
