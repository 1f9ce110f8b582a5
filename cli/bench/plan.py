"""What is measured: which servers, under which loads, how often. Made of options that were checked."""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cli.bench.arrivals import arrival_times_s
from cli.bench.asks import Ask
from cli.bench.client import Server
from cli.bench.objectives import Objective
from cli.bench.trace import Arrival
from cli.bench.workloads import LONG, Lengths, Script, Workload, draw_scripts, stream_asks

_LEAST_SCRIPTS = 4
_OPEN_SCRIPTS = 32


@dataclass(frozen=True, slots=True)
class Point:
    """One load of a sweep: so many clients that wait for their answers, or so many requests a second that
    wait for nothing; neither of a trace."""

    clients: int | None = None
    rate_per_s: float | None = None

    @property
    def label(self) -> str:
        if self.clients is not None:
            return f"{self.clients} client{'s' if self.clients > 1 else ''}"
        return "the trace" if self.rate_per_s is None else f"{self.rate_per_s:g} requests/s"


@dataclass(frozen=True, slots=True)
class Load:
    """``scripts`` are drawn anew by each call, the same ones. With ``clients`` each of them takes the next
    one when it has all answers of the last; without, the nth begins at ``arrivals_s[n]``. ``streams``
    run beside, ``quiet_s`` of them before the first script. Nothing is begun after ``duration_s``."""

    scripts: Callable[[], Iterator[Script]]
    clients: int | None = None
    arrivals_s: tuple[float, ...] = ()
    duration_s: float | None = None
    num_requests: int | None = None
    streams: tuple[Ask, ...] = ()
    quiet_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    servers: tuple[Server, ...]
    points: tuple[Point, ...]
    rounds: int
    seed: int
    lengths: Lengths
    workload: Workload | None = None  #: else the trace
    trace: tuple[Arrival, ...] = field(default=(), repr=False)
    burstiness: float = 1.0
    requests: int | None = None
    duration_s: float | None = None
    quiet_s: float = 0.0
    objective: Objective | None = None
    model: str | None = None
    api_key: str | None = field(default=None, repr=False)
    out: Path | None = None

    @property
    def workload_name(self) -> str:
        return self.workload.name if self.workload else "trace"

    def load(self, point: Point, round_number: int, lengths: Lengths) -> Load:
        """``lengths`` with the rate that was measured."""
        seed = f"{self.seed} {round_number} {point.label}"
        if self.workload is None:
            return self._trace_load(seed, lengths)
        if self.workload.name == LONG:
            return self._long_load(self.workload, point, seed, lengths)
        return self._drawn_load(self.workload, point, seed, lengths)

    def _trace_load(self, seed: str, lengths: Lengths) -> Load:
        def scripts() -> Iterator[Script]:
            rng = random.Random(seed)
            return ((arrival.ask_of(rng, lengths.rate),) for arrival in self.trace)

        times_s = tuple(arrival.time_s for arrival in self.trace)
        return Load(scripts, arrivals_s=times_s, num_requests=len(times_s))

    def _long_load(self, workload: Workload, point: Point, seed: str, lengths: Lengths) -> Load:
        requests = self.requests or workload.requests
        streams = stream_asks(random.Random(f"{seed} streams"), lengths, point.clients or 1)
        return Load(
            lambda: draw_scripts(workload, lengths, seed, requests),
            clients=1,
            num_requests=requests,
            streams=streams,
            quiet_s=self.quiet_s,
        )

    def _drawn_load(self, workload: Workload, point: Point, seed: str, lengths: Lengths) -> Load:
        requests = self._num_requests(point, lengths.turns)
        arrivals_s: tuple[float, ...] = ()
        if point.rate_per_s is not None and requests is not None:
            count = math.ceil(requests / lengths.turns)
            rng = random.Random(f"{seed} arrivals")
            drawn_s = arrival_times_s(rng, count, point.rate_per_s, self.burstiness)
            arrivals_s = tuple(drawn_s)
        return Load(
            lambda: draw_scripts(workload, lengths, seed, requests),
            clients=point.clients,
            arrivals_s=arrivals_s,
            duration_s=self.duration_s,
            num_requests=requests,
        )

    def _num_requests(self, point: Point, turns: int) -> int | None:
        """None: as many as the time allows."""
        if self.requests is not None:
            return self.requests
        if point.clients is None:
            wanted = _OPEN_SCRIPTS
            if self.duration_s is not None and point.rate_per_s is not None:
                # The last of them comes at the end at the latest.
                wanted = max(1, int(point.rate_per_s * self.duration_s))
            return wanted * turns
        if self.duration_s is not None:
            return None
        return turns * max(_LEAST_SCRIPTS, point.clients * (2 if turns == 1 else 1))
