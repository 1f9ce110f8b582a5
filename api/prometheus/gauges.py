"""What is so at this moment, and what each worker's host counts. Pure."""

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from api.fleet import Fleet, WorkerView
from api.metrics_view import Metrics
from api.prometheus.counters import MODEL, PREFIX
from shared.protocol import WorkerState

#: Of each worker that lives.
_OF_A_WORKER: dict[str, tuple[str, Callable[[WorkerView], float]]] = {
    "kv_cache_usage_perc": ("KV cache in use, 0 to 1.", lambda w: w.kv_usage),
    "worker_slots": ("Sequences it can run at once.", lambda w: w.slots),
    "worker_slots_used": ("Sequences it runs.", lambda w: w.slots_used),
    "worker_tokens_per_second": ("Generated, over ten seconds.", lambda w: w.tokens_per_s),
    "worker_prefill_tokens_per_second": (
        "Prompt tokens while it computes them.",
        lambda w: w.prefill_tokens_per_s,
    ),
    "worker_read_bandwidth_bytes_per_second": (
        "Estimate: size of the weights times calls of the model.",
        lambda w: w.read_gb_per_s * 1e9,
    ),
    "worker_memory_bytes": (
        "Its own and its share of what it shares.",
        lambda w: w.memory_mb * 1e6,
    ),
    "worker_cpu_percent": ("Of one core.", lambda w: w.cpu_percent),
    "worker_cores": ("Cores it is pinned to.", lambda w: len(w.cores)),
}
_OF_A_CGROUP: dict[str, tuple[str, Callable[[WorkerView], float]]] = {
    "cpu_throttled_periods": (
        "Periods in which a CPU quota stopped its cgroup (nr_throttled).",
        lambda w: w.throttled_periods,
    ),
    "cpu_periods": ("Periods of its cgroup's CPU quota.", lambda w: w.cpu_periods),
}


def gauges_of(
    fleet: Fleet, metrics: Metrics, *, num_failed_starts: int, max_queued_jobs: int
) -> Iterator[Metric]:
    running = GaugeMetricFamily(
        PREFIX + "num_requests_running", "Requests that workers hold.", labels=[MODEL]
    )
    for model, count in sorted(fleet.running_of.items()):
        running.add_metric([model], count)
    yield running
    waiting = GaugeMetricFamily(
        PREFIX + "num_requests_waiting",
        "Requests in the queues; `suspect` are those that workers died of.",
        labels=[MODEL, "priority"],
    )
    for model, depths in sorted(fleet.depths_of.items()):
        for priority, count in depths.items():
            waiting.add_metric([model, priority], count)
    yield waiting
    yield from _of_workers(fleet)
    for name, text, value in (
        ("worker_failed_starts", "In the last ten minutes.", num_failed_starts),
        ("queue_limit_jobs", "Requests that may wait, of one model.", max_queued_jobs),
        ("snapshots", "Kept on the hosts of live workers.", metrics.prefix_cache.snapshots),
        ("snapshot_bytes", "Kept on the hosts of live workers.", metrics.prefix_cache.bytes),
        ("gateway_memory_bytes", "Of this gateway.", metrics.gateway.memory_mb * 1e6),
        ("gateway_cpu_percent", "Of one core.", metrics.gateway.cpu_percent),
    ):
        yield GaugeMetricFamily(PREFIX + name, text, value=value)


def _of_workers(fleet: Fleet) -> Iterator[Metric]:
    states = GaugeMetricFamily(PREFIX + "workers", "Workers by state.", labels=["state"])
    for state in (*(state.value for state in WorkerState), "lost"):
        states.add_metric([state], sum(worker.state == state for worker in fleet.workers))
    yield states
    # Two of one name (a container that is replaced, say) must not be one series twice: the later counts.
    live = {worker.name: worker for worker in fleet.workers if worker.is_live}
    for key, (text, value_of) in _OF_A_WORKER.items():
        gauge = GaugeMetricFamily(PREFIX + key, text, labels=["worker", MODEL])
        for name, worker in live.items():
            gauge.add_metric([name, worker.model], value_of(worker))
        yield gauge
    for key, (text, value_of) in _OF_A_CGROUP.items():
        counter = CounterMetricFamily(PREFIX + key, text, labels=["worker"])
        for name, worker in live.items():
            counter.add_metric([name], value_of(worker))
        yield counter
