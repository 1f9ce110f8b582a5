"""What a fleet looks like to Prometheus: parsed again by its own library, and checked by promtool."""

import shutil
import subprocess
from itertools import chain

import pytest
from prometheus_client.parser import text_string_to_metric_families

from api.fleet import Fleet, make_fleet
from api.metrics_view import metrics_of
from api.prometheus.counters import counters_of, histograms_of
from api.prometheus.gauges import gauges_of
from api.prometheus.text import render
from shared.histograms import BOUNDS_S, bucket_field, counter_field, sum_field
from tests.unit.api.test_fleet import NOW, report, totals


def fleet() -> Fleet:
    service = totals(worker_deaths=2, cache_hit_tokens=30) | totals(
        **{
            bucket_field("m", "ttft", 3): 2,
            sum_field("m", "ttft"): 30_000,
            counter_field("m", "ended_stop"): 4,
            counter_field("m", "refused_queue_full"): 1,
        }
    )
    one = totals(
        **{bucket_field("m", "ttft", len(BOUNDS_S["ttft"])): 1, sum_field("m", "ttft"): 3_000_000}
    )
    facts = {"kv_usage": 0.25, "throttled_periods": 7, "cpu_periods": 9, "slots": 4}
    replies = [NOW, [], service, 1, 2, 3, 4]
    replies += [one, {b"report": report("b", **facts), b"beat_ms": b"10000"}, 1, 2]
    replies += [{}, {b"report": report("a")}, 0, 1]
    return make_fleet(["b.1", "a.1"], replies, ["m"])


def text(accept: str = "") -> tuple[str, str]:
    seen = fleet()
    metrics = metrics_of(seen, gateway_memory_mb=50, gateway_cpu_percent=1)
    gauges = gauges_of(seen, metrics, num_failed_starts=3, max_queued_jobs=100)
    body, content_type = render(chain(gauges, counters_of(seen), histograms_of(seen)), accept)
    return body.decode(), content_type


def samples() -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text()[0])
        for sample in family.samples
    }


def test_each_figure_has_its_name_and_labels() -> None:
    found = samples()
    model = ("model_name", "m")

    def value(name: str, *labels: tuple[str, str]) -> float:
        return found[f"mini_vllm_{name}", tuple(sorted(labels))]

    assert value("num_requests_running", model) == 3
    assert value("num_requests_waiting", model, ("priority", "suspect")) == 4
    assert value("kv_cache_usage_perc", model, ("worker", "b")) == 0.25
    assert value("cpu_throttled_periods_total", ("worker", "b")) == 7
    assert value("workers", ("state", "ready")) == 1
    assert value("workers", ("state", "lost")) == 1
    assert value("worker_failed_starts") == 3
    assert value("queue_limit_jobs") == 100
    assert value("worker_deaths_total") == 2
    assert value("prefix_cache_hits_total") == 30
    assert value("request_success_total", model, ("finished_reason", "stop")) == 4
    assert value("admission_rejections_total", model, ("reason", "queue_full")) == 1
    assert not any(name == "mini_vllm_worker_slots" and ("worker", "a") in of for name, of in found)


def test_a_histogram_is_cumulative_over_the_living_and_the_dead() -> None:
    found = samples()
    name = "mini_vllm_time_to_first_token_seconds"
    model = ("model_name", "m")
    assert found[f"{name}_bucket", (("le", "0.01"), model)] == 0
    assert found[f"{name}_bucket", (("le", "0.02"), model)] == 2
    assert found[f"{name}_bucket", (("le", "2560.0"), model)] == 2
    assert found[f"{name}_bucket", (("le", "+Inf"), model)] == 3
    assert found[f"{name}_count", (model,)] == 3
    assert found[f"{name}_sum", (model,)] == pytest.approx(3.03)


def test_what_has_not_happened_is_zero_from_the_start() -> None:
    found = samples()
    model = ("model_name", "m")
    assert found["mini_vllm_request_success_total", (("finished_reason", "error"), model)] == 0
    assert found["mini_vllm_admission_rejections_total", (model, ("reason", "redis_full"))] == 0
    assert found["mini_vllm_generation_tokens_total", (model,)] == 0
    assert found["mini_vllm_e2e_request_latency_seconds_count", (model,)] == 0
    assert found["mini_vllm_e2e_request_latency_seconds_bucket", (("le", "+Inf"), model)] == 0


def test_open_metrics_is_for_those_who_ask_for_it() -> None:
    body, content_type = text("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith("# EOF\n")
    assert text("text/plain")[1].startswith("text/plain; version=0.0.4")


@pytest.mark.parametrize("version", ["abc", "1..0", "", "=", "99999999999"])
def test_a_version_that_is_none_is_answered(version: str) -> None:
    body, _ = text(f"application/openmetrics-text; version={version}")
    assert "mini_vllm_worker_deaths_total 2.0\n" in body


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: prometheus)")
def test_promtool_has_nothing_against_it() -> None:
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text()[0], capture_output=True, text=True
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
