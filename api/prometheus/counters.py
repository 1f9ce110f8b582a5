"""What only grows. Pure."""

from collections.abc import Callable, Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from api.fleet import Fleet
from shared.errors import NoWorkerReady, QueueFull, RedisFull, TooManyJobs
from shared.histograms import BOUNDS_S, empty_histogram
from shared.metrics import Totals
from shared.protocol import FinishReason

PREFIX = "mini_vllm_"
MODEL = "model_name"

#: Name in `shared.histograms` -> name, and what it tells.
HISTOGRAMS = {
    "ttft": ("time_to_first_token_seconds", "Submit to first token."),
    "itl": ("inter_token_latency_seconds", "Between two tokens of a request."),
    "e2e": ("e2e_request_latency_seconds", "Submit to end, however it ended."),
    "queue": ("request_queue_time_seconds", "Submit to the first attempt."),
    "prefill": ("request_prefill_time_seconds", "Begin of the last attempt to its first token."),
    "decode": ("request_decode_time_seconds", "First token of the last attempt to the end."),
    "step": (
        "step_time_seconds",
        "One round of an engine: a token for each sequence, and prompts.",
    ),
}
_OF_A_MODEL = {
    "prompt_tokens": "Prompt tokens of requests that began.",
    "generation_tokens": "Tokens that were generated.",
}
#: Prefixes of counters by model, for families with one more label: that label, what it tells, and the
#: values that are there from the start, since a rate misses what a series begins with.
_BY_LABEL = {
    "ended_": (
        "request_success",
        "finished_reason",
        "Requests that ended, by how they did.",
        tuple(reason.value for reason in FinishReason),
    ),
    "refused_": (
        "admission_rejections",
        "reason",
        "Requests that were not taken, by why.",
        tuple(cls.code for cls in (QueueFull, TooManyJobs, RedisFull, NoWorkerReady)),
    ),
}
_OF_ALL: dict[str, tuple[str, Callable[[Totals], float]]] = {
    "prefix_cache_queries": (
        "Prompt tokens that were looked up.",
        lambda t: t.cache_query_tokens,
    ),
    "prefix_cache_hits": ("Prompt tokens that were not computed.", lambda t: t.cache_hit_tokens),
    "prefix_cache_saved_seconds": (
        "Estimate, from the measured rate of prefill.",
        lambda t: t.cache_saved_ms / 1000,
    ),
    "prefix_cache_restore_seconds": (
        "Spent on restoring snapshots.",
        lambda t: t.cache_restore_us / 1e6,
    ),
    "num_preemptions": ("Requests that made room for others.", lambda t: t.preemptions),
    "parked": ("Requests that left a worker with their state.", lambda t: t.parked),
    "resumed_tokens": ("Restored instead of computed again.", lambda t: t.resumed_tokens),
    "snapshots_written": ("Snapshots of KV written.", lambda t: t.snapshots_written),
    "snapshot_written_bytes": (
        "Of the snapshots that were written.",
        lambda t: t.snapshot_bytes_written,
    ),
    "snapshots_evicted": ("Snapshots that made room for others.", lambda t: t.snapshots_evicted),
    "snapshots_refused": ("Snapshots that found no room.", lambda t: t.snapshots_refused),
    "worker_deaths": ("Workers that died and were not told to.", lambda t: t.worker_deaths),
    "recovered_jobs": ("Requests whose worker died, queued again.", lambda t: t.recovered_jobs),
    "webhooks_delivered": ("Webhooks that were taken.", lambda t: t.webhooks_delivered),
    "webhooks_dropped": ("Webhooks that were given up.", lambda t: t.webhooks_dropped),
}


def counters_of(fleet: Fleet) -> Iterator[Metric]:
    counters, models = fleet.observed.counters, fleet.depths_of
    for key, text in _OF_A_MODEL.items():
        family = CounterMetricFamily(PREFIX + key, text, labels=[MODEL])
        counted = dict.fromkeys(models, 0) | {
            m: n for (m, name), n in counters.items() if name == key
        }
        for model, value in sorted(counted.items()):
            family.add_metric([model], value)
        yield family
    for prefix, (key, label, text, known) in _BY_LABEL.items():
        family = CounterMetricFamily(PREFIX + key, text, labels=[MODEL, label])
        values = {(model, prefix + name): 0 for model in models for name in known}
        values |= {at: n for at, n in counters.items() if at[1].startswith(prefix)}
        for (model, name), value in sorted(values.items()):
            family.add_metric([model, name.removeprefix(prefix)], value)
        yield family
    for key, (text, value_of) in _OF_ALL.items():
        yield CounterMetricFamily(PREFIX + key, text, value=value_of(fleet.totals))


def histograms_of(fleet: Fleet) -> Iterator[Metric]:
    for key, (name, text) in HISTOGRAMS.items():
        family = HistogramMetricFamily(PREFIX + name, text, labels=[MODEL])
        seen = dict.fromkeys(fleet.depths_of, empty_histogram(key))
        seen |= {m: row for (m, of), row in fleet.observed.histograms.items() if of == key}
        for model, histogram in sorted(seen.items()):
            bounds = [*(str(float(bound)) for bound in BOUNDS_S[key]), "+Inf"]
            buckets = list(zip(bounds, accumulate(histogram.counts), strict=True))
            family.add_metric([model], buckets, histogram.sum_s)
        yield family
