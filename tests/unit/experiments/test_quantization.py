"""Formats: which to compare, what nothing beats, which to run."""

import pytest

from experiments.frame.samples import Samples
from experiments.frame.study import TooLittle
from experiments.quantization.formats import chosen_formats, reference_of
from experiments.quantization.judging import explain, judge, tabulate, takeaway
from experiments.quantization.kernels import kernels_of
from shared.errors import SetupError
from shared.gguf_header import ModelFacts
from tests.unit.experiments.recorded import figures_of

Q4_1 = ModelFacts({"general.file_type": 3}, 10**8, 10**8)
F16 = ModelFacts({"general.file_type": 1}, 10**8, 2 * 10**8)


def test_the_models_own_file_comes_first_and_no_format_twice() -> None:
    assert chosen_formats(Q4_1, (), is_quick=True) == ("as-is", "bf16", "q4_0")
    assert chosen_formats(Q4_1, ("Q8_0", "q4_1", "q8_0"), is_quick=True) == ("as-is", "q8_0")


@pytest.mark.parametrize("asked", [("q4_1",), ("as-is",)])
def test_one_format_cannot_be_compared(asked: tuple[str, ...]) -> None:
    with pytest.raises(SetupError, match=r"--formats: one beside the model's own \(q4_1\)"):
        chosen_formats(Q4_1, asked, is_quick=True)


def test_an_unknown_format_is_refused_by_name() -> None:
    with pytest.raises(SetupError, match="--formats: there is no weight format 'q9'"):
        chosen_formats(Q4_1, ("q9",), is_quick=True)


def test_others_are_judged_by_what_loses_nothing() -> None:
    assert reference_of(Q4_1, ("as-is", "bf16", "f16")) == "f16"
    assert reference_of(Q4_1, ("as-is", "q8_0")) == "as-is"
    assert reference_of(F16, ("as-is", "bf16", "q8_0")) == "as-is"


def test_kernels_are_named_by_where_the_weights_are_and_by_the_build() -> None:
    tiles = "LLAMAFILE = 1 | REPACK = 1"
    assert kernels_of("q4_0", 100, {"CPU_Mapped": 98, "CPU_REPACK": 67}, tiles) == "repacked 67%"
    assert kernels_of("q8_0", 100, {"CPU_Mapped": 98, "AMX": 80}, tiles) == "AMX 80%"
    assert kernels_of("bf16", 200, {"CPU_Mapped": 198}, tiles) == "tiled"
    assert kernels_of("q4_1", 100, {"CPU_Mapped": 98}, tiles) == "row by row"
    assert kernels_of("bf16", 200, {"CPU_Mapped": 198}, "AVX2 = 1") == "row by row"


def made(formats: dict[str, tuple[float, float, float, float]]) -> Samples:
    """By format: decode alone and with 16, perplexity, MB."""
    samples = Samples(facts={"own": "q4_1", "reference": "f16", "formats": {}})
    for name, (alone, many, perplexity, mb) in formats.items():
        samples.facts["formats"][name] = {
            "file_mb": mb, "rss_mb": mb, "load_s": 1, "buffers_mb": {"CPU_Mapped": mb}
        }  # fmt: skip
        speeds = {
            "prompt_tokens_per_s": 100, "decode_1_tokens_per_s": alone,
            "decode_8_tokens_per_s": many, "decode_16_tokens_per_s": many,
        }  # fmt: skip
        samples.add({"format": name}, 1, speeds)
        quality = {
            "perplexity": perplexity, "kl_mean": 0.1, "top_agreement": 0.9, "scored_tokens": 255
        }  # fmt: skip
        samples.add({"quality": name}, 1, quality)
    return samples


# As measured on one thread of an AVX512-BF16 machine.
MEASURED = {
    "as-is": (104.0, 131.0, 11.67, 92.0),
    "f16": (65.0, 238.0, 11.64, 257.0),
    "bf16": (95.0, 323.0, 11.64, 257.0),
    "q8_0": (88.0, 210.0, 11.71, 136.0),
    "q4_0": (126.0, 339.0, 14.42, 86.0),
}


def test_small_files_win_alone_and_upcasts_in_batches_at_the_same_quality() -> None:
    figures = judge(made(MEASURED), {})
    assert (figures["chat"], figures["batch"]) == ("as-is", "bf16")
    assert "q4_1, as is for chat (104 tokens/s alone), bf16 for batches" in takeaway(figures)
    assert "q4_0 14.42" in explain(figures, {})


def test_a_format_that_another_one_beats_in_everything_is_off_the_front() -> None:
    figures = judge(made(MEASURED), {})
    assert set(figures["pareto_chat"]) == {"as-is", "bf16", "q4_0"}
    assert "f16" not in figures["pareto_batch"]
    assert "q8_0" in figures["pareto_batch"]


def test_speeds_without_quality_choose_nothing() -> None:
    samples = made(MEASURED)
    samples.kept = [sample for sample in samples.kept if "format" in sample.case]
    figures = judge(samples, {})
    assert figures["chat"] is None
    assert figures["pareto_chat"] == []
    assert takeaway(figures) == "q4_0 decodes fastest: 126 tokens/s"
    assert tabulate(figures).rows[0][-2] == "-"
    with pytest.raises(TooLittle):
        judge(Samples(), {})


def test_the_recorded_run_runs_bf16_for_batches() -> None:
    figures = figures_of("quantization")
    assert figures["batch"] == "bf16"
    assert {row["format"]: row["kernels"] for row in figures["rows"]} == {
        "as-is": "row by row",
        "bf16": "tiled",
        "q4_0": "repacked 65%",
    }
