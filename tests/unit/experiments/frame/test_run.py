"""Runs of a study that goes wrong in one way or another."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cli.job import EXIT_INTERRUPTED
from experiments.frame import command
from experiments.frame.command import EXIT_WRONG, finish, run_studies
from experiments.frame.probing import ProbeFailed
from experiments.frame.run import conduct, keep
from experiments.frame.samples import Samples
from experiments.frame.setting import Setting
from experiments.frame.study import Study, Table, TooLittle
from experiments.frame.watch import Watch
from shared.errors import BadRequest
from shared.settings import Settings

SETTING = cast(
    Setting, SimpleNamespace(card={"cpu": "Abacus"}, is_quick=True, rounds=1, settings=Settings())
)


def study_of(error: BaseException | None, *, after: int) -> Study:
    """Counts to ``after``, and breaks off."""

    def measure(_setting: Setting, samples: Samples, _watch: Watch) -> None:
        for number in range(after):
            samples.add({"number": number}, 1, {"value": number})
        if error:
            raise error

    def judge(samples: Samples, _card: Any) -> dict[str, Any]:
        if not samples.kept:
            raise TooLittle("nothing was counted")
        return {"count": len(samples.kept)}

    return Study(
        name="counting",
        title="Counting",
        check=lambda _: None,
        measure=measure,
        judge=judge,
        tabulate=lambda figures: Table(("count",), ((str(figures["count"]),),)),
        explain=lambda figures, _: f"It counted {figures['count']}.",
        draw=lambda _: pytest.fail("no plot was asked for"),
        headline=lambda figures: {"count": float(figures["count"])},
    )


def test_what_was_measured_before_a_process_died_is_kept_and_told(tmp_path: Path) -> None:
    whole = tmp_path / "counting.json"
    whole.write_text("whole")
    outcome = conduct(study_of(ProbeFailed("it was killed"), after=3), SETTING, None)
    keep(outcome, tmp_path, has_plots=False)
    assert outcome.problem == "it broke off: it was killed"
    assert finish([outcome], outcome.result, outcome.files) == EXIT_WRONG
    kept = json.loads((tmp_path / "counting-interrupted.json").read_text())
    assert kept["figures"] == {"count": 3}
    assert whole.read_text() == "whole"


def test_why_nothing_was_measured_is_told() -> None:
    outcome = conduct(study_of(ProbeFailed("no memory"), after=0), SETTING, None)
    assert outcome.problem == "it broke off: no memory"
    assert outcome.run is None


def test_ctrl_c_while_a_result_is_kept_ends_the_run_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "complete_card", lambda _: {})
    monkeypatch.setattr(command, "keep", interrupted)
    studies = [(study_of(None, after=2), SETTING), (study_of(None, after=9), SETTING)]
    monkeypatch.setattr(command, "replace", lambda setting, **_: setting)
    outcomes, _ = run_studies(studies, out=tmp_path, compare=None, has_plots=False)
    (outcome,) = outcomes
    assert outcome.is_interrupted
    assert outcome.result["figures"] == {"count": 2}


def test_the_last_line_is_told_of_a_run_that_was_interrupted_after_all_was_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = conduct(study_of(None, after=2), SETTING, None)
    assert finish([outcome], outcome.result | {"is_interrupted": True}, []) == EXIT_INTERRUPTED
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["figures"] == {"count": 2}


def test_figures_of_another_version_are_refused_before_anything_is_measured(
    tmp_path: Path,
) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"experiment": "counting", "figures": {"num": 1}, "card": {}}))
    study = study_of(AssertionError("it was measured"), after=0)
    with pytest.raises(BadRequest, match=r"--compare .*figures of counting .*KeyError: 'count'"):
        run_studies([(study, SETTING)], out=tmp_path, compare=other, has_plots=False)
