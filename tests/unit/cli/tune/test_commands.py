"""Options that are given to nobody, and loads that no service could take."""

import sys
from pathlib import Path

import pytest

from cli.__main__ import main
from cli.tune.decision import Limits
from cli.tune.formats import fits_disk
from cli.tune.setup import make_plan
from cli.tune.trials import Load
from shared.errors import SetupError
from shared.gguf_header import read_facts
from shared.models import ResolvedModel
from shared.settings import load_settings
from shared.trials import RequestShape
from tests.unit.shared.test_gguf_header import make_gguf


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["--model", "other", "clear"], "--model"),
        (["--concurrency", "2", "show"], "--concurrency"),
        (["--dry-run", "threads"], "--dry-run"),
    ],
)
def test_an_option_before_a_command_that_does_not_see_it_is_refused(
    words: list[str],
    option: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["mini-vllm", "tune", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert f"{option}: stands before `{words[-1]}`" in capsys.readouterr().err


@pytest.fixture
def model(tmp_path: Path) -> ResolvedModel:
    path = tmp_path / "m.gguf"
    numbers = {"block_count": 1, "context_length": 512, "embedding_length": 8}
    heads = {"attention__head_count": 2, "attention__head_count_kv": 2}
    path.write_bytes(make_gguf(general__file_type=3, **numbers, **heads))
    return ResolvedModel("m", path)


def plan(model: ResolvedModel, output_tokens: int, **fields: object) -> None:
    settings = load_settings(model_dir=model.path.parent, **fields)
    load = Load(1, (RequestShape(prompt_tokens=256, output_tokens=output_tokens),))
    make_plan(settings, model, load, formats="as-is", limits=Limits())


def test_requests_fill_the_context_and_no_more(model: ResolvedModel) -> None:
    plan(model, 256)
    with pytest.raises(SetupError, match=r"are 513 tokens together, and the context of m is 512"):
        plan(model, 257)


def test_requests_are_those_that_the_service_will_take(model: ResolvedModel) -> None:
    with pytest.raises(SetupError, match=r"context of m is 300 here.*MINI_VLLM_CONTEXT_TOKENS"):
        plan(model, 64, context_tokens=300)


def test_a_model_directory_that_is_not_there_yet_has_the_room_of_its_disk(
    model: ResolvedModel, tmp_path: Path
) -> None:
    facts = read_facts(model.path)
    assert fits_disk(facts, model.path, "bf16", tmp_path / "not" / "yet")
