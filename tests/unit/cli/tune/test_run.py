"""What is kept of a run, and said of it."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cli.tune import run as run_module
from cli.tune.candidates import Candidate
from cli.tune.decision import Limits, decide
from cli.tune.plot import takeaway
from cli.tune.report import sentence
from cli.tune.run import Wish, kind_of, tune, who_uses
from cli.tune.trials import Load
from shared.errors import SetupError
from shared.settings import load_settings
from shared.trials import RequestShape
from shared.tuning import save_record
from tests.records import make_record
from tests.unit.cli.tune.recorded import made

DEFAULT, BF16 = Candidate("as-is", 2, 1, 8), Candidate("bf16", 2, 1, 8)


def test_the_only_record_is_used(tmp_path: Path) -> None:
    record = make_record(concurrency=1)
    save_record(tmp_path, record)
    assert who_uses(record, load_settings(model_dir=tmp_path)) == "`up` uses it from now on"


def test_one_of_another_load_is_used_by_who_asks_for_it(tmp_path: Path) -> None:
    usual, lone = make_record(concurrency=16), make_record(concurrency=1)
    for record in (usual, lone):
        save_record(tmp_path, record)
    settings = load_settings(model_dir=tmp_path)
    words = who_uses(lone, settings)
    assert words.startswith("`up --concurrency 1` uses it, and `up` alone the tuned record")
    assert words.endswith("for 16 clients")
    assert who_uses(usual, settings) == "`up` uses it from now on"


def test_a_short_look_takes_the_place_of_nothing_that_was_measured_in_full(tmp_path: Path) -> None:
    for is_short, kind in ((True, "quick"), (False, "tuned")):
        measures = {BF16: [made(BF16, 100, is_short=is_short)]}
        chosen = decide(measures, Limits(), default=DEFAULT, single=DEFAULT).chosen
        assert chosen is not None
        assert kind_of(chosen) == kind
    whole, look = make_record(kind="tuned"), make_record(kind="quick")
    for record in (whole, look):
        save_record(tmp_path, record)
    words = who_uses(look, load_settings(model_dir=tmp_path))
    assert words.startswith("a short look only; `up` goes on with the tuned record")


def test_a_gain_in_latency_is_not_told_as_one_of_tokens() -> None:
    measures = {
        DEFAULT: [made(DEFAULT, 100, ttft_ms=200, itl_ms=80)],
        BF16: [made(BF16, 90, ttft_ms=100, itl_ms=40)],
    }
    decision = decide(measures, Limits("latency"), default=DEFAULT, single=DEFAULT)
    words = sentence(decision, DEFAULT, DEFAULT, "latency")
    assert "(90 tokens/s): 2.00 times as quick as the default" in words
    assert takeaway(decision, "latency").endswith("2.00 times as quick as the default")


def test_the_default_alone_is_not_compared_with_anything() -> None:
    alone = {DEFAULT: [made(DEFAULT, 100)]}
    decision = decide(alone, Limits(), default=DEFAULT, single=DEFAULT)
    assert "there was nothing else" in sentence(decision, DEFAULT, DEFAULT, "throughput")
    decision = decide(alone | {BF16: [made(BF16, 101)]}, Limits(), default=DEFAULT, single=DEFAULT)
    assert "nothing else that was tried" in sentence(decision, DEFAULT, DEFAULT, "throughput")


def test_what_was_measured_is_told_though_it_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any) -> Path:
        raise SetupError("the record cannot be written")

    measures = {DEFAULT: [made(DEFAULT, 100)]}
    search = SimpleNamespace(
        measures=measures, default=DEFAULT, single=DEFAULT, is_out_of_time=False
    )
    session = SimpleNamespace(search=search, was_interrupted=False, problems=[])
    plan = SimpleNamespace(left_out=(), limits=Limits(), default=DEFAULT, single=DEFAULT)
    for name, value in {
        "resolve_model": lambda *_: SimpleNamespace(name="m"),
        "make_plan": lambda *_, **__: plan,
        "cores_in_use": lambda _: [],
        "_measure": lambda *_: session,
        "make_record": lambda *_: make_record(),
        "save_record": refuse,
    }.items():
        monkeypatch.setattr(run_module, name, value)
    load = Load(1, (RequestShape(prompt_tokens=8, output_tokens=8),))
    wish = Wish(load, Limits(), cast(Any, "as-is"), 10.0)
    with pytest.raises(SetupError, match="cannot be written"):
        tune(load_settings(model_dir=tmp_path), wish)
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["figures"]["output_tokens_per_s"] == 100
    assert told["record"] is None
