"""What `mini-vllm bench` can be asked, and what it refuses. Pure but for the file of a trace.

Each refusal names the option and its limit; an option that the workload has no use for is refused too.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from cli.bench.client import Server
from cli.bench.objectives import parse_objective
from cli.bench.plan import Plan, Point
from cli.bench.trace import read_trace
from cli.bench.workloads import LONG, WORKLOADS, Lengths, Workload
from cli.durations import parse_duration_s
from shared.errors import BadRequest

MAX_CLIENTS = 4096
MAX_RATE_PER_S = 100_000.0
MIN_RATE_PER_S = 0.001
MAX_BURSTINESS = 1000.0
_MAX_POINTS = 64
_MAX_DURATION_S = 86_400.0
_MAX_QUIET_S = 30.0
#: Arrivals of an open loop are drawn beforehand.
_MAX_ARRIVALS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """As it was typed; None is not given. Numbers are in their ranges already."""

    url: list[str]
    compare: list[str]
    workload: str | None = None
    trace: Path | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    prefix_tokens: int | None = None
    turns: int | None = None
    concurrency: str | None = None
    rate: str | None = None
    burstiness: float | None = None
    duration: str | None = None
    requests: int | None = None
    rounds: int = 1
    seed: int | None = None
    quiet: str | None = None
    slo: str | None = None
    model: str | None = None
    key: str | None = None
    out: Path | None = None


def make_plan(given: Given) -> Plan:
    """Raises ``BadRequest``."""
    workload = _workload(given)
    _refuse_useless(given, workload)
    arrivals = read_trace(given.trace) if given.trace else []
    if given.requests is not None:
        arrivals = arrivals[: given.requests]
    plan = Plan(
        servers=parse_servers(given.url, given.compare),
        points=_points(given, workload),
        rounds=given.rounds,
        seed=random.randrange(2**32) if given.seed is None else given.seed,
        lengths=_lengths(given, workload),
        workload=workload,
        trace=tuple(arrivals),
        burstiness=_burstiness(given),
        requests=given.requests,
        duration_s=_duration_s("duration", given.duration, _MAX_DURATION_S),
        quiet_s=_duration_s("quiet", given.quiet, _MAX_QUIET_S) or 5.0,
        objective=None if given.slo is None else parse_objective(given.slo),
        model=given.model,
        api_key=given.key,
        out=given.out,
    )
    _check_arrivals(plan)
    return plan


def parse_servers(urls: list[str], compared: list[str]) -> tuple[Server, ...]:
    servers = [_server("url", text) for text in urls] + [_server("compare", t) for t in compared]
    if not urls:
        raise _refused("url", "needs the address of a server")
    for what in ("name", "url"):
        if len({getattr(server, what) for server in servers}) < len(servers):
            told = f"two servers have one {what}"
            raise _refused(
                "url", f"{told}; the second one would be warm" if what == "url" else told
            )
    return tuple(servers)


def _server(option: str, text: str) -> Server:
    name, sign, url = text.partition("=")
    if not sign or "://" in name:  # the query of an address may have one too
        name, url = "", text
    url = url.rstrip("/").removesuffix("/v1")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # raises what is no number up to 65535
    except ValueError:
        is_address = False
    if not is_address:
        raise _refused(option, f"must be http://HOST:PORT or NAME=http://HOST:PORT (got {text!r})")
    return Server(name or parts.netloc.rpartition("@")[2], url)


def _workload(given: Given) -> Workload | None:
    if given.trace is not None:
        if given.workload not in (None, "trace"):
            raise _refused("workload", f"{given.workload} does not go with --trace")
        return None
    name = given.workload or "random"
    if name == "trace":
        raise _refused("workload", "trace needs --trace FILE")
    if name not in WORKLOADS:
        raise _refused("workload", f"must be {', '.join(WORKLOADS)} or trace (got {name!r})")
    return WORKLOADS[name]


def _refuse_useless(given: Given, workload: Workload | None) -> None:
    name = workload.name if workload else "trace"
    useful = {
        "prefix_tokens": name == "shared-prefix",
        "turns": name == "chat",
        "quiet": name == LONG,
        "prompt_tokens": name != "trace",
        "output_tokens": name != "trace",
        "concurrency": name != "trace",
        "rate": name not in ("trace", LONG),
        "duration": name not in ("trace", LONG),
    }
    for option, is_useful in useful.items():
        if getattr(given, option) is not None and not is_useful:
            raise _refused(option, f"the workload {name} has no use for it")
    if given.concurrency is not None and given.rate is not None:
        raise _refused(
            "rate", "requests come at a rate, or when --concurrency clients have answers"
        )
    if given.burstiness is not None and given.rate is None:
        raise _refused("burstiness", "is of arrivals; it needs --rate")
    if given.requests is not None and given.duration is not None:
        raise _refused("duration", "give either it or --requests")


def _lengths(given: Given, workload: Workload | None) -> Lengths:
    if workload is None:
        return Lengths(prompt_tokens=0, output_tokens=0)
    prompt = given.prompt_tokens or workload.prompt_tokens
    output = given.output_tokens or workload.output_tokens
    prefix = given.prefix_tokens or workload.prefix_tokens
    return Lengths(prompt, output, prefix, given.turns or workload.turns)


def _points(given: Given, workload: Workload | None) -> tuple[Point, ...]:
    if workload is None:
        return (Point(),)
    if given.rate is not None:
        rates = _numbers("rate", given.rate, float, MAX_RATE_PER_S)
        return tuple(Point(rate_per_s=rate) for rate in rates)
    if given.concurrency is None:
        return (Point(clients=workload.clients),)
    counts = _numbers("concurrency", given.concurrency, int, MAX_CLIENTS)
    return tuple(Point(clients=int(count)) for count in counts)


def _numbers(option: str, text: str, kind: Callable[[str], float], most: float) -> list[float]:
    least = 1 if kind is int else MIN_RATE_PER_S
    told = f"must be numbers from {least:g} to {most:g}, like 1,4,16"
    try:
        numbers = [kind(part) for part in text.split(",")]
    except ValueError:
        raise _refused(option, f"{told} (got {text[:60]!r})") from None
    for number in numbers:
        if not least <= number <= most:
            raise _refused(option, f"{told} (got {number:.40g})")
    if len(set(numbers)) < len(numbers):
        raise _refused(option, f"a number is given twice (got {text[:60]!r})")
    if len(numbers) > _MAX_POINTS:
        raise _refused(option, f"at most {_MAX_POINTS} numbers (got {len(numbers)})")
    return numbers


def _burstiness(given: Given) -> float:
    value = 1.0 if given.burstiness is None else given.burstiness
    if not (math.isfinite(value) and 0.01 <= value <= MAX_BURSTINESS):
        raise _refused("burstiness", f"must be from 0.01 to {MAX_BURSTINESS:g} (got {value})")
    return value


def _duration_s(option: str, text: str | None, most_s: float) -> float | None:
    if text is None:
        return None
    try:
        value_s = parse_duration_s(text)
    except ValueError as error:
        raise _refused(option, str(error)) from None
    if not 0 < value_s <= most_s:
        raise _refused(option, f"must be more than 0 and at most {most_s:g} s (got {text})")
    return value_s


def _check_arrivals(plan: Plan) -> None:
    for point in plan.points:
        if point.rate_per_s is None or plan.duration_s is None:
            continue
        num = point.rate_per_s * plan.duration_s
        if num < 1:
            told = f"no request comes in {plan.duration_s:g} s at --rate {point.rate_per_s:g}"
            raise _refused("duration", f"{told}; at least {1 / point.rate_per_s:g} s")
        if num > _MAX_ARRIVALS:
            told = f"--duration times --rate must be at most {_MAX_ARRIVALS} requests"
            raise _refused("duration", f"{told} (got {num:.0f})")


def _refused(option: str, what: str) -> BadRequest:
    return BadRequest(f"--{option.replace('_', '-')}: {what}", field=option)
