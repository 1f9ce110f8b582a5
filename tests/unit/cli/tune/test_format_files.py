"""How long files of formats take to make, and that it is within the time."""

from pathlib import Path
from typing import Any

import pytest

from cli.tune.format_files import FormatFiles
from cli.tune.formats import size_bytes
from cli.tune.runner import TrialFailed
from shared.converted import converted_path
from shared.gguf_header import read_facts
from tests.factories import Clock
from tests.unit.shared.test_gguf_header import make_gguf


class Converter:
    """Takes its time on a clock, and asks whether it may go on, as the real one does."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock = clock
        self.seconds = seconds
        self.made: list[str] = []

    def __call__(self, source: Path, to: str, model_dir: Path, *, progress: Any) -> Path:
        for done in range(10):
            progress(done, 10)
            self.clock.now_s += self.seconds / 10
        self.made.append(to)
        return converted_path(source, to, model_dir)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def files(tmp_path: Path, clock: Clock) -> FormatFiles:
    source = tmp_path / "m.gguf"
    source.write_bytes(make_gguf(block_count=1))
    facts = read_facts(source)
    return FormatFiles(source, facts, tmp_path, Converter(clock, 4.0), clock)


def test_what_is_there_takes_no_time_and_is_not_made_again(files: FormatFiles) -> None:
    copy = converted_path(files.source, "bf16", files.model_dir)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(b"")
    files.find(["as-is", "bf16", "f16"])
    assert files.paths == {"as-is": files.source, "bf16": copy}
    assert (files.expected_s("as-is"), files.expected_s("bf16")) == (0, 0)
    files.make("bf16", lambda: -1.0)
    assert isinstance(files.convert, Converter)
    assert files.convert.made == []


def test_the_others_take_as_long_for_a_byte_as_the_slowest_before(files: FormatFiles) -> None:
    guessed_s = files.expected_s("f16")
    assert guessed_s > 0
    files.make("bf16", lambda: 100.0)
    assert files.expected_s("bf16") == 0
    share = size_bytes(files.facts, "f16") / size_bytes(files.facts, "bf16")
    assert files.expected_s("f16") == pytest.approx(4.0 * share)
    files.convert = Converter(Clock(), 0.0)
    files.make("q8_0", lambda: 100.0)
    assert files.expected_s("f16") == pytest.approx(4.0 * share)


def test_one_that_is_not_done_in_time_is_given_up(files: FormatFiles, clock: Clock) -> None:
    end_s = clock.now_s + 1.0
    with pytest.raises(TrialFailed, match="bf16 was not done when the time was over"):
        files.make("bf16", lambda: end_s - clock.now_s)
    assert "bf16" not in files.paths
    assert clock.now_s <= end_s + 0.4
