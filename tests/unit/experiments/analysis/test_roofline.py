"""Bytes and operations of a step, and what bounds it."""

import pytest

from experiments.analysis.roofline import Roofline, bandwidth_percent
from experiments.analysis.work import ModelWork, work_of
from shared.gguf_header import ModelFacts

WORK = ModelWork(
    layer_parameters=100_000_000,
    output_parameters=25_000_000,
    attention_dims=17_280,
    weight_bytes=100_000_000,
    kv_bytes_per_token=20_000,
)


def test_a_tiny_llama_at_its_reference_speed_uses_most_of_its_bandwidth() -> None:
    # 1.1 billion parameters in 4 bits, 28.6 tokens a second, on a machine that reads 25 GB/s.
    assert bandwidth_percent(637e6, 1 / 28.6, 25) == pytest.approx(72.9, abs=0.1)


def test_operations_are_two_for_each_weight_and_four_for_each_dimension_looked_at() -> None:
    assert WORK.flops(0, 1, outputs=0) == 2e8 + 4 * 17_280
    assert WORK.flops(9, 10, outputs=1) == 2.5e8 + 4 * 17_280 * 10
    whole = sum(WORK.flops(n, n + 1, outputs=1) for n in range(50))
    assert WORK.flops(0, 50, outputs=50) == pytest.approx(whole)


def test_the_knee_is_where_both_take_as_long() -> None:
    roofline = Roofline(bytes_per_s=25e9, flops_per_s=500e9)
    knee = roofline.knee_rows(WORK, 64)
    assert knee is not None
    assert roofline.memory_s(WORK, 1, 64) > roofline.compute_s(WORK, 1, 64)
    fixed_s, kv_s = 0.1e9 / 25e9, 65 * 20_000 / 25e9
    row_s = roofline.compute_s(WORK, 1, 64)
    assert fixed_s + knee * kv_s == pytest.approx(knee * row_s)
    assert roofline.step_s(WORK, round(knee) + 3, 64) > roofline.step_s(WORK, 1, 64)


def test_a_machine_that_computes_faster_than_it_reads_has_no_knee() -> None:
    roofline = Roofline(bytes_per_s=1e9, flops_per_s=1e15)
    assert roofline.knee_rows(WORK, 1000) is None


def test_the_work_of_a_model_comes_from_its_header() -> None:
    fields = {
        "general.architecture": "llama",
        "llama.block_count": 30,
        "llama.embedding_length": 576,
        "llama.attention.head_count": 9,
        "llama.attention.head_count_kv": 3,
    }
    facts = ModelFacts(
        fields, 134_515_008, 98_362_432, dense_bytes=96_576_768, table_parameters=28_311_552
    )
    work = work_of(facts, 49_152)
    assert work.layer_parameters == 106_203_456
    assert work.output_parameters == 28_311_552
    assert work.attention_dims == 30 * 9 * 64
    assert work.step_bytes(2, 99) == 96_576_768 + 2 * 100 * 23_040
