"""News make pictures."""

from typing import Any

from cli.top.picture import MAX_POINTS, News, Picture
from tests.unit.cli.recorded import NOW_S, point, view, worker


def seen(*news: tuple[str, Any]) -> Picture:
    picture = Picture()
    for kind, payload in news:
        picture = picture.with_news(News(kind, payload), 7.0)
    return picture


def history(*points: dict[str, Any]) -> tuple[str, Any]:
    return "history", {"interval_s": 10, "points": list(points)}


def test_it_is_whole_with_a_view_and_the_history_in_either_order() -> None:
    assert not seen(("view", view())).is_whole
    assert not seen(history()).is_whole
    assert seen(("view", view()), history()).is_whole
    assert seen(history(), ("view", view())).heard_s == 7.0


def test_points_are_added_and_only_an_hour_is_kept() -> None:
    many = [point(10 * i) for i in range(MAX_POINTS, 0, -1)]
    picture = seen(history(*many), ("point", point(0)))
    assert picture.points is not None
    assert (len(picture.points), picture.points[-1]["at"]) == (MAX_POINTS, NOW_S)


def test_the_history_after_a_break_takes_the_place_of_the_old_one() -> None:
    assert seen(history(point(20)), history(point(20), point(10))).points == (point(20), point(10))


def test_a_break_keeps_the_view_and_news_end_it() -> None:
    away = seen(("view", view()), ("away", "gone"))
    assert (away.problem, away.view) == ("gone", view())
    assert away.with_news(News("view", view()), 8.0).problem == ""


def test_what_is_not_known_changes_nothing() -> None:
    picture = seen(("view", view()))
    assert picture.with_news(News("surprise", {}), 9.0) == picture


def test_throttling_is_that_of_the_last_minute() -> None:
    def at(age_s: float, periods: int, throttled: int) -> tuple[str, Any]:
        one = worker(cpu_periods=periods, throttled_periods=throttled)
        return "view", view(at=NOW_S - age_s, workers=[one])

    old = [at(300, 1_000, 900), at(70, 10_000, 900), at(65, 10_050, 900)]
    picture = seen(*old, at(0, 10_650, 1_020))
    assert picture.throttled == {"worker-0.8f3a": 120 / 600}
    assert seen(*old, ("view", view(workers=[]))).throttled == {}
