"""Samples of one quick run of all experiments on a real machine of two cores, from ``tests/data``."""

import json
from pathlib import Path
from typing import Any

from experiments.frame.folder import label_of
from experiments.frame.samples import Samples
from experiments.frame.study import Figures, Run
from experiments.whole import STUDIES

_DATA = Path(__file__).parents[2] / "data" / "experiments.json"


def recorded(name: str) -> tuple[Samples, dict[str, Any]]:
    """Samples and card."""
    saved = json.loads(_DATA.read_text())[name]
    return Samples.from_json(saved["samples"]), saved["card"]


def figures_of(name: str) -> Figures:
    study = next(study for study in STUDIES if study.name == name)
    return study.judge(*recorded(name))


def run_of(name: str) -> Run:
    card = recorded(name)[1]
    return Run(label_of(card), json.loads(json.dumps(figures_of(name))), card)
