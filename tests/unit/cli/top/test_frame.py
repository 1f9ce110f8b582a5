"""A frame fits the terminal, and says what matters first, without colour too."""

from typing import Any

import pytest
from rich.console import Console

from cli.top.frame import Screen, frame
from cli.top.picture import News, Picture
from cli.top.sections import Style
from tests.unit.cli.recorded import NOW_S, job, point, queue, running, view, worker

LONG = {"prompt_tokens": 4096, "cached_tokens": 0, "completion_tokens": 4096}


def picture_of(*points: dict[str, Any], **changes: Any) -> Picture:
    picture = Picture().with_news(News("view", view(**changes)), NOW_S)
    return picture.with_news(News("history", {"interval_s": 10, "points": points}), NOW_S)


def drawn(
    picture: Picture, width: int = 80, height: int = 24, encoding: str = "utf-8", later_s: float = 0
) -> list[str]:
    screen = Screen("http://127.0.0.1:8000", height, Style.of(width, encoding))
    console = Console(width=width, height=height, record=True, color_system=None)
    with console.capture() as capture:
        console.print(frame(picture, screen, NOW_S + later_s))
    return capture.get().rstrip("\n").split("\n")


def busy(num_workers: int = 2, num_jobs: int = 50) -> Picture:
    workers = [worker(f"worker-{i}", slots_used=8) for i in range(num_workers)]
    failure = {"name": "worker-9", "host": "node-2", "model": "m", "message": "x" * 400, "at": 1}
    return picture_of(
        *(point(10 * i) for i in range(360, 0, -1)),
        workers=workers,
        failures=[failure],
        queue=queue(normal=(12_000, 4_000.0), suspect=(2, None)),
        jobs=[job(status="cancelled", worker="a-long-name-of-a-worker", usage=LONG)] * num_jobs,
    )


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 24), (80, 60)])
@pytest.mark.parametrize("num_workers", [0, 2, 40])
def test_it_fits(width: int, height: int, num_workers: int) -> None:
    lines = drawn(busy(num_workers), width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    for line in lines:
        if line.startswith("4b355c02"):
            assert line.rstrip().endswith(" s"), "no column is cut"


def test_the_verdict_and_what_to_do_come_first() -> None:
    lines = drawn(picture_of(queue=queue(normal=(12, 8.0))))
    assert lines[1].startswith("Users wait about 8 s: 12 jobs in the queue")
    assert lines[2].startswith("-> Add workers")


def test_workers_queue_curves_and_jobs_are_there() -> None:
    points = (point(10 * i, tokens_per_s=2.0 * i) for i in range(360, 0, -1))
    text = "\n".join(drawn(picture_of(*points, queue=queue(high=(2, 1.5)))))
    assert "worker-0  ready  0        3/8     153.3  21 %  310  99 %" in text
    assert "high 2 (wait 1.5 s)" in text
    assert "max 720" in text
    assert "TTFT p99  900 ms" in text
    assert "4b355c02  completed" in text


def test_more_workers_than_there_is_room_for_are_counted() -> None:
    text = "\n".join(drawn(busy(40)))
    assert "worker-0 " in text
    assert " more" in text


def test_a_bar_shows_what_a_job_spent_its_time_on() -> None:
    [line] = [line for line in drawn(picture_of(jobs=[job()])) if "4b355c02" in line]
    bar = line.split("33+38")[1].split()[0]
    assert set(bar) == {"·", "▒", "█"}
    assert bar.count("█") == pytest.approx(len(bar) / 2, abs=1)
    [line] = [
        line for line in drawn(picture_of(jobs=[running(queued_s=1.0)])) if "4b355c02" in line
    ]
    assert "4.0 s" in line
    assert "█" not in line


def test_a_terminal_without_blocks_gets_plain_characters() -> None:
    picture = picture_of(*(point(10 * i) for i in range(360, 0, -1)), jobs=[job()])
    text = "\n".join(drawn(picture, encoding="ascii"))
    assert text.isascii()
    assert "@@@" in text


def test_a_key_of_ones_own_sees_its_jobs_and_that_workers_are_for_admins() -> None:
    own = {"scope": "own", "workers": None, "failures": None, "warnings": None, "totals": None}
    text = "\n".join(drawn(picture_of(**own)))
    assert "jobs of this key" in text
    assert "Workers are shown to admin keys only." in text


def test_a_service_that_does_not_answer_is_said_to_be_as_it_was() -> None:
    away = picture_of().with_news(News("away", "nothing answers at http://x"), NOW_S)
    lines = drawn(away, later_s=12)
    assert lines[1] == "Reconnecting; what is below was so 12 s ago."
    assert lines[2] == "-> nothing answers at http://x"


def test_what_others_wrote_cannot_move_the_cursor() -> None:
    sly = worker("w\x1b[2J")
    text = "\n".join(drawn(picture_of(workers=[sly], warnings=["\x1b]0;x\x07"])))
    assert "\x1b" not in text
    assert "\\x1b[2J" in text
