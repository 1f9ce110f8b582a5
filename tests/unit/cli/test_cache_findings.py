from pathlib import Path

import pytest

from cli.cache_findings import check_cache, room_findings
from shared.settings import load_settings


@pytest.mark.parametrize(
    ("total_mb", "free_mb", "level", "words"),
    [
        (255, 255, "warn", "255 MB and is 0 % full: few snapshots fit"),
        (1000, 1000, "ok", "1000 MB and is 0 % full"),
        (1000, 60, "ok", "94 % full"),
        (1000, 40, "warn", "96 % full"),
    ],
)
def test_a_filesystem_that_is_small_or_full_is_warned_of(
    total_mb: int, free_mb: int, level: str, words: str
) -> None:
    (finding,) = room_findings(total_mb * 10**6, free_mb * 10**6)
    assert finding.level == level
    assert words in finding.what
    assert bool(finding.todo) == (level == "warn")


def test_it_says_how_much_the_cache_may_hold_and_makes_nothing(tmp_path: Path) -> None:
    host_dir = tmp_path / "not" / "there"
    first = next(iter(check_cache(load_settings(host_dir=host_dir, cache_max_bytes=5_000_000))))
    assert (first.level, first.what) == ("ok", f"the prefix cache may hold 5 MB in {host_dir}")
    assert not list(tmp_path.iterdir())


def test_a_cache_that_is_off_is_said_to_be(tmp_path: Path) -> None:
    (finding,) = check_cache(load_settings(host_dir=tmp_path, prefix_cache=False))
    assert finding.what.startswith("the prefix cache is off")
