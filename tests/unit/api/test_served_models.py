from typing import Any

import pytest

from api.served_models import find_model, served_models
from shared.errors import ModelNotFound
from shared.protocol import Weights, WorkerReport, WorkerState


def report(model: str, state: WorkerState = WorkerState.READY, **fields: Any) -> WorkerReport:
    return WorkerReport(
        name="w", incarnation="w.1", pid=1, host="h", model=model, state=state, **fields
    )


def test_the_gateways_own_model_is_there_without_a_worker() -> None:
    models = served_models("own", ["late"], [report("other")])
    assert list(models) == ["own", "late", "other"]
    assert models["own"].is_own
    assert (models["own"].workers, models["late"].workers, models["other"].ready) == (0, 0, 1)


def test_numbers_are_those_of_the_worker_that_takes_most() -> None:
    live = [
        report("own", context_tokens=100, max_piece_bytes=9, num_vocab=5),
        report("own", WorkerState.LOADING),
        report("own", context_tokens=200, max_piece_bytes=8, num_vocab=5),
    ]
    model = served_models("own", [], live)["own"]
    assert (model.workers, model.ready) == (3, 2)
    assert (model.context_tokens, model.max_piece_bytes, model.num_vocab) == (200, 9, 5)


def test_tools_are_called_if_all_workers_that_are_ready_can() -> None:
    hermes, none = report("own", tool_format="hermes"), report("own")
    loading = report("own", WorkerState.LOADING)
    assert served_models("own", [], [hermes, loading])["own"].tool_format == "hermes"
    assert served_models("own", [], [hermes, none])["own"].tool_format is None
    assert served_models("own", [], [])["own"].tool_format is None


@pytest.mark.parametrize("asked", [None, "default", "tiny", "/models/tiny.gguf"])
def test_the_own_model_has_several_names(asked: str | None) -> None:
    models = served_models("tiny", [], [report("other")])
    assert find_model(models, asked, "tiny", "/models/tiny.gguf").name == "tiny"


def test_others_have_their_name_and_their_file() -> None:
    models = served_models("tiny", [], [report("other")])
    for asked in ("other", "elsewhere/other.gguf"):
        assert find_model(models, asked, "tiny", "tiny").name == "other"


@pytest.mark.parametrize("asked", ["gpt-4o", "", "x" * 5000, "etc/tiny"])
def test_a_model_that_nobody_serves_is_not_found(asked: str) -> None:
    with pytest.raises(ModelNotFound, match="served: tiny") as caught:
        find_model(served_models("tiny", [], []), asked, "tiny", "tiny")
    assert len(caught.value.message) < 300


def test_a_fingerprint_is_of_the_workers_that_are_ready_and_of_their_builds() -> None:
    def of(*live: WorkerReport) -> str | None:
        return served_models("own", [], live)["own"].fingerprint

    one = report("own", llama_cpp="0.3", model_description="tiny Q4_1")
    other = report("own", llama_cpp="0.4", model_description="tiny Q4_1")
    loading = report("own", WorkerState.LOADING)
    found = of(one)
    assert found is not None
    assert found.startswith("fp_")
    assert len(found) == 15
    assert of(one, one, loading) == found
    assert of(one, other) == of(other, one)
    bf16, q4_0 = (
        one.model_copy(update={"weights": Weights(format="q4_0", fingerprint=letter * 16)})
        for letter in "ab"
    )
    assert len({of(one), of(bf16), of(q4_0), of(bf16, q4_0)}) == 4
    renamed = served_models("m", [], [one.model_copy(update={"model": "m"})])["m"].fingerprint
    assert len({found, of(other), of(one, other), renamed}) == 4
    assert of(loading) is None
    assert of(one, report("own")) is None, "one that does not say what it is"
