"""A worker's whole loop over a played model and a real Valkey: what a step takes, and a token of Redis."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter, thread_time
from typing import Any

from redis import Redis

from experiments.loop_steps import CONTEXT_TOKENS, PROMPT_CHARS
from experiments.played_model import PlayedModel
from experiments.played_worker import MODEL, played_worker
from experiments.prompts import make_text
from experiments.redis_traffic import Traffic, cost_of_tokens
from shared.admission import Limits
from shared.broker import Broker
from shared.protocol import GenerateRequest
from shared.settings import load_settings
from worker.backends.base import Row
from worker.service import Drain

#: The short run, of the long one.
_SHORT_SHARE = 4
_LONGEST_RUN_S = 600.0


@dataclass(frozen=True, slots=True)
class RedisCost:
    """Of the loop: ``step_us`` by the clock, with the wait for Redis; ``step_cpu_us`` of this process."""

    token: Traffic
    job: Traffic
    step_us: float
    step_cpu_us: float

    def figures(self) -> dict[str, float]:
        return {
            "step_us": self.step_us,
            "step_cpu_us": self.step_cpu_us,
            "script_calls_per_token": self.token.num_script_calls,
            "commands_per_token": self.token.num_commands,
            "bytes_to_redis_per_token": self.token.received_bytes,
            "bytes_from_redis_per_token": self.token.sent_bytes,
            "commands_per_job": self.job.num_commands,
            "bytes_per_job": self.job.received_bytes + self.job.sent_bytes,
        }


@dataclass(frozen=True, slots=True)
class _Run:
    """``steps_s`` and ``steps_cpu_s`` are from one decode of all jobs to the next."""

    traffic: Traffic
    steps_s: list[float]
    steps_cpu_s: list[float]


class _EndingModel(PlayedModel):
    """Has the worker drain as soon as a first job has ended: all are there by then."""

    def __init__(self, drain: Drain, slots: int) -> None:
        super().__init__(slots=slots, context_tokens=CONTEXT_TOKENS)
        self.num_tokens = 0
        #: By number of rows: when a decode of so many began, by the clock and by this thread's CPU time.
        self.decodes: dict[int, list[tuple[float, float]]] = defaultdict(list)
        self._drain = drain

    def sample_prefill(self, slot: int, index: int) -> int:
        self.num_tokens += 1
        return super().sample_prefill(slot, index)

    def decode(self, rows: Sequence[Row], indices: Sequence[int]) -> list[int]:
        self.decodes[len(rows)].append((perf_counter(), thread_time()))
        self.num_tokens += len(rows)
        return super().decode(rows, indices)

    def close_slot(self, slot: int) -> None:
        if not self._drain.is_requested:
            self._drain.request()
        super().close_slot(slot)


def measure_redis(client: Redis, jobs: int, *, slots: int, tokens: int) -> RedisCost:
    """Empties that Redis. ``jobs`` run at once, each of ``tokens``; then again with fewer tokens."""
    short_tokens = tokens // _SHORT_SHARE
    short = _run(client, jobs, slots, short_tokens)
    long = _run(client, jobs, slots, tokens)
    token, job = cost_of_tokens(
        short.traffic, long.traffic, jobs=jobs, short_tokens=short_tokens, long_tokens=tokens
    )
    return RedisCost(
        token,
        job,
        statistics.median(long.steps_s) * 1e6,
        statistics.median(long.steps_cpu_s) * 1e6,
    )


def _run(client: Redis, jobs: int, slots: int, tokens: int) -> _Run:
    settings = load_settings()
    client.flushall()
    drain = Drain(_LONGEST_RUN_S)
    model = _EndingModel(drain, slots)
    with played_worker(client, model, drain) as service:
        broker = Broker(client, MODEL, settings.result_ttl_s, Limits.from_settings(settings))
        before = _look(client)
        for number in range(jobs):
            text = make_text(number, PROMPT_CHARS)
            broker.submit(GenerateRequest(prompt=text, max_tokens=tokens, ignore_eos=True))
        service.run()
        if model.num_tokens != jobs * tokens:
            raise RuntimeError(
                f"{model.num_tokens} tokens were made of {jobs} jobs of {tokens}: they did not run together"
            )
        pairs = list(pairwise(model.decodes[jobs]))
        return _Run(
            _look(client) - before,
            [next_s - at_s for (at_s, _), (next_s, _) in pairs],
            [next_s - at_s for (_, at_s), (_, next_s) in pairs],
        )


def _look(client: Redis) -> Traffic:
    info: Any = client.info("everything")
    return Traffic.from_info(info)
