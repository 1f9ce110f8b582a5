"""Runs studies one after the other, and makes of each a result: figures, a table, a paragraph, a plot."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cli.bench.canvas import save
from cli.card import load_1min
from cli.whole_file import write_whole
from experiments.frame.folder import label_of
from experiments.frame.noise import noise_of
from experiments.frame.samples import Samples
from experiments.frame.setting import Setting
from experiments.frame.study import Run, Study, Table, TooLittle
from experiments.frame.watch import Watch
from shared.errors import ServiceError


@dataclass(slots=True)
class Outcome:
    """``other`` is the run that it was compared with. ``problem``: why there is nothing to show, or less than
    there should be."""

    study: Study
    run: Run | None
    other: Run | None
    result: dict[str, Any]
    text: str = ""
    table: Table | None = None
    problem: str = ""
    files: list[Path] = field(default_factory=list)

    @property
    def is_interrupted(self) -> bool:
        return bool(self.result["is_interrupted"])

    @property
    def is_whole(self) -> bool:
        return not self.is_interrupted and not self.result["broke"]


def run_of(result: dict[str, Any]) -> Run:
    """Of a result that was kept."""
    return Run(label_of(result["card"]), result["figures"], result["card"])


def conduct(study: Study, setting: Setting, other: dict[str, Any] | None) -> Outcome:
    """Ctrl-C ends the measuring, and so does a process that dies; what was measured is judged all the
    same."""
    samples, is_interrupted, broke = Samples(), False, ""
    began_s = time.monotonic()
    try:
        with Watch(study.name) as watch:
            study.measure(setting, samples, watch)
    except KeyboardInterrupt:
        is_interrupted = True
    except ServiceError as error:
        broke = f"it broke off: {error.message}"
    card = dict(setting.card) | samples.facts.get("card", {}) | {"load_1min_after": load_1min()}
    busy = float(str(card.get("busy_cores_before", 0)))
    result: dict[str, Any] = {
        "experiment": study.name,
        "card": card,
        "is_quick": setting.is_quick,
        "rounds": setting.rounds,
        "is_interrupted": is_interrupted,
        "broke": broke,
        "took_s": round(time.monotonic() - began_s, 1),
        "noise": noise_of(samples, busy, study.repeated),
        "samples": samples.to_json(),
    }
    compared = run_of(other) if other else None
    try:
        figures = study.judge(samples, card)
    except TooLittle as error:
        return Outcome(study, None, compared, result, problem=broke or str(error))
    # As it will be read again.
    figures = json.loads(json.dumps(figures))
    text = study.explain(figures, card)
    result |= {"figures": figures, "headline": study.headline(figures), "text": text}
    run = Run(label_of(card), figures, card)
    return Outcome(study, run, compared, result, text, study.tabulate(figures), broke)


def keep(outcome: Outcome, folder: Path, *, has_plots: bool) -> None:
    """As ``NAME.json`` and the plot; what an earlier run left there is replaced. What is not whole
    has a name of its own, so that it takes the place of nothing whole."""
    if outcome.run is None:
        return
    name = outcome.study.name + ("" if outcome.is_whole else "-interrupted")
    file = folder / f"{name}.json"
    write_whole(file, to_text(outcome.result))
    outcome.files.append(file)
    if has_plots:
        runs = [outcome.run, *([outcome.other] if outcome.other else [])]
        outcome.files += save(outcome.study.draw(runs), folder / name)


def to_text(result: dict[str, Any]) -> str:
    """JSON of a line for each part: samples are long lists."""
    parts = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in result.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def without_samples(result: dict[str, Any]) -> dict[str, Any]:
    """For the last line of the output; files have them."""
    return {name: value for name, value in result.items() if name != "samples"}
