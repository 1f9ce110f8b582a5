from pathlib import Path

import pytest

from shared.host import host_dir_id


def test_a_host_directory_has_one_name_whatever_path_leads_there(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    (tmp_path / "link").symlink_to(one)
    assert host_dir_id(one) == host_dir_id(tmp_path / "link")
    assert host_dir_id(one) != host_dir_id(other)


def test_a_host_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        host_dir_id(tmp_path / "none")
