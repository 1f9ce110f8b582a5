"""The help of `mini-vllm experiment`: whole lines, and every experiment teaches how it is called."""

import pytest
from typer.testing import CliRunner

from experiments.app import app
from experiments.whole import STUDIES

NAMES = [*(study.name for study in STUDIES), "all"]


def help_of(*arguments: str) -> str:
    found = CliRunner().invoke(app, [*arguments, "--help"], terminal_width=80)
    assert found.exit_code == 0
    return found.output


def test_the_list_of_experiments_breaks_off_nowhere() -> None:
    listed = help_of().partition("Commands:")[2]
    assert "..." not in listed
    assert all(f"  {name} " in listed for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_shows_an_example_and_its_defaults(name: str) -> None:
    told = " ".join(help_of(name).split())
    assert f"Example: mini-vllm experiment {name} --" in told
    assert "default" in told
