from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chance import chance
from tests.compose.project import Project

__all__ = ["chance"]

Make = Callable[..., Project]


@pytest.fixture
def make_project(tmp_path: Path) -> Iterator[Make]:
    made: list[Project] = []

    def make(*files: Path, **settings: str) -> Project:
        made.append(Project(tmp_path, *files, **settings))
        return made[-1]

    yield make
    for project in reversed(made):
        project.remove()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Built, and up as it is: two workers."""
    project = Project(tmp_path_factory.mktemp("project"))
    try:
        project.run("build", deadline_s=3600)
        project.run("up", "--detach")
        yield project
    finally:
        print(project.run("logs", "--no-color", "--tail", "60", check=False))
        project.remove()
