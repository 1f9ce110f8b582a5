from pathlib import Path

import pytest

from cli.whole_file import write_whole


def test_what_is_there_stays_until_the_new_text_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "new\ud800")
    assert path.read_text() == "old"
    write_whole(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
