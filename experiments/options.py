"""The options that all experiments have, and the way from them to a run."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from experiments.frame.command import finish, run_studies
from experiments.frame.run import without_samples
from experiments.frame.setting import Setting, make_setting
from experiments.frame.study import Study
from shared.settings import load_settings

Model = Annotated[
    str | None,
    typer.Option(help="a known name or the path of a GGUF file; default: MINI_VLLM_MODEL"),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="a first look: shorter, one round, and kept apart")
]
Rounds = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=100,
        help="how often each case is measured, in turn; tables give medians; 3, with --quick 1",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1, help="of the process that computes; default: as many as there are usable cores"
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="a folder for results; default: experiments/results/HOST of a checkout, else the same below "
        "MINI_VLLM_DATA_DIR; with --quick its subfolder `quick`"
    ),
]
Compare = Annotated[
    Path | None,
    typer.Option(help="the JSON file that another run kept: it is drawn and told beside this one"),
]
Plots = Annotated[bool, typer.Option(help="as PNG and SVG beside the JSON; needs matplotlib")]


@dataclass(frozen=True, slots=True)
class Given:
    model: str | None
    is_quick: bool
    rounds: int | None
    threads: int | None
    out: Path | None
    compare: Path | None
    has_plots: bool

    def setting(self, *, points: tuple[int, ...] = (), formats: tuple[str, ...] = ()) -> Setting:
        return make_setting(
            load_settings(),
            self.model,
            is_quick=self.is_quick,
            rounds=self.rounds,
            threads=self.threads,
            points=points,
            formats=formats,
        )

    def command(self, name: str) -> str:
        """What makes the same run again."""
        parts = ["mini-vllm experiment", name]
        if self.is_quick:
            parts.append("--quick")
        for option, value in (
            ("--model", self.model),
            ("--rounds", self.rounds),
            ("--threads", self.threads),
        ):
            if value is not None:
                parts.append(f"{option} {shlex.quote(str(value))}")
        return " ".join(parts)


def carry_out(study: Study, setting: Setting, given: Given) -> int:
    """The exit code. Raises ``ServiceError``."""
    outcomes, _ = run_studies(
        [(study, setting)], out=given.out, compare=given.compare, has_plots=given.has_plots
    )
    (outcome,) = outcomes
    return finish(outcomes, without_samples(outcome.result), outcome.files)
