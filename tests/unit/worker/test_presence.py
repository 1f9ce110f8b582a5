import os
from pathlib import Path

import pytest

from shared.errors import SetupError
from tests.seeker_process import seeking
from worker.gate import gate
from worker.presence import Presence
from worker.shares import Holder, Seeker


@pytest.fixture
def mine(tmp_path: Path) -> Presence:
    return Presence(tmp_path, "mine")


def test_others_see_what_a_worker_says(tmp_path: Path, mine: Presence) -> None:
    other = Presence(tmp_path, "other")
    with gate(tmp_path):
        assert mine.others() == {}, "it does not seek yet"
        other.say(Seeker(0, 3, (4, 5, 6, 7)))
        assert mine.others() == {"other": Seeker(0, 3, (4, 5, 6, 7))}
        other.say(Holder((4, 5)))
        assert mine.others() == {"other": Holder((4, 5))}
    other.close()
    with gate(tmp_path):
        assert mine.others() == {}


def test_a_killed_worker_is_not_there_and_its_file_is_removed(
    tmp_path: Path, mine: Presence
) -> None:
    with seeking(tmp_path, "a", num_cores=2, threads=1) as (other,):
        assert other.seek().cores() == [0]
        with gate(tmp_path):
            assert mine.others() == {"a": Holder((0,))}
        other.kill()
        with gate(tmp_path):
            assert mine.others() == {}
    assert sorted(os.listdir(tmp_path / "workers")) == ["mine"]


def test_no_two_have_one_incarnation(tmp_path: Path, mine: Presence) -> None:
    with pytest.raises(SetupError, match="incarnation mine runs already"):
        Presence(tmp_path, "mine")
    mine.close()
    Presence(tmp_path, "mine").close()


def test_a_locked_file_of_another_make_is_left_alone(tmp_path: Path, mine: Presence) -> None:
    Presence(tmp_path, "odd")._write("sleeps 3")
    with gate(tmp_path):
        assert mine.others() == {}
    assert (tmp_path / "workers" / "odd").exists()


def test_a_sign_of_life_is_the_time_of_the_file(tmp_path: Path, mine: Presence) -> None:
    path = tmp_path / "workers" / "mine"
    os.utime(path, (1, 1))
    mine.touch()
    assert path.stat().st_mtime > 1
    path.unlink()
    mine.touch()
    mine.close()
