from cli.cache_files import Snapshot, choose
from cli.cache_warm import outcome_of
from shared.cache_scopes import kind_of


def make_snapshot(scope: str, used_at: float) -> Snapshot:
    return Snapshot(
        name=scope,
        fingerprint="f",
        scope=scope,
        kind=kind_of(scope),
        tokens=1,
        bytes=1,
        used_at=used_at,
    )


STORED = [make_snapshot("public", 100), make_snapshot("key:a", 50), make_snapshot("job:b", 10)]


def chosen(older_than_s: float, takes_jobs: bool) -> list[str]:
    found = choose(STORED, older_than_s=older_than_s, takes_jobs=takes_jobs, now_s=110)
    return [snapshot.scope for snapshot in found]


def test_what_a_job_goes_on_from_is_taken_only_where_all_is() -> None:
    assert chosen(0, takes_jobs=False) == ["public", "key:a"]
    assert chosen(0, takes_jobs=True) == ["public", "key:a", "job:b"]


def test_what_was_used_of_late_can_be_left() -> None:
    assert chosen(60, takes_jobs=True) == ["key:a", "job:b"]
    assert chosen(61, takes_jobs=False) == []


def test_a_clock_that_was_set_back_makes_nothing_old() -> None:
    assert make_snapshot("all", 100).unused_s(50) == 0


def test_the_outcome_says_how_much_was_computed_where_and_for_whom() -> None:
    usage = {"prompt_tokens": 500, "cached_tokens": 0, "completion_tokens": 1}
    end = {"usage": usage, "timings": {"prefill_s": 0.815}}
    assert outcome_of(end, "worker-1", is_public=False) == (
        "500 of 500 tokens computed in 0.81 s on worker-1; jobs of this key start from them on its host"
    )
    end["usage"] = usage | {"cached_tokens": 480}
    words = outcome_of(end, "worker-1", is_public=True)
    assert "20 of 500 tokens computed" in words
    assert "480 were there; jobs of all keys" in words
