import json
import logging
import re
import sys
from typing import Any

import pytest

from shared.logs.context import about, concerning, note, note_job
from shared.logs.formats import JsonFormat, TextFormat, printable

JOB = "0123456789abcdef" * 2


def record(message: Any, *args: Any, name: str = "worker.service", **extra: Any) -> Any:
    made = logging.getLogger(name).makeRecord(
        name, logging.INFO, "f.py", 7, message, args, None, extra=extra or None
    )
    made.created = 1767268800.25
    return made


def failing(error: Exception) -> Any:
    made = record("it failed")
    try:
        raise error
    except Exception:
        made.exc_info = sys.exc_info()
    return made


def as_json(made: Any, **constants: Any) -> dict[str, Any]:
    line = JsonFormat("worker-0", constants).format(made)
    assert line.isascii()
    assert line.isprintable(), "one line, whatever reads it"
    return dict(json.loads(line))


def as_text(made: Any) -> str:
    return TextFormat("worker-0", {"model": "smollm2"}).format(made)


def test_an_event_in_json_has_when_who_what_and_what_it_is_about() -> None:
    made = record("job %s: attempt %d", JOB, 2, **about(job=JOB, attempt=2, user=None))
    assert as_json(made, worker="worker-0", model="smollm2") == {
        "time": "2026-01-01T12:00:00.250Z",
        "level": "info",
        "process": "worker-0",
        "logger": "worker.service",
        "message": f"job {JOB}: attempt 2",
        "worker": "worker-0",
        "model": "smollm2",
        "job": JOB,
        "attempt": 2,
    }


def test_no_field_takes_the_place_of_when_and_who() -> None:
    made = record("it", **about(time="never", process="another", level="debug"))
    assert as_json(made)["process"] == "worker-0"
    assert as_json(made)["level"] == "info"


def test_text_has_the_ids_that_its_words_do_not_have() -> None:
    made = record("job %s: attempt 2", JOB, **about(job=JOB, request_id="r 1", attempt=2))
    head, line = as_text(made).split(" ", 1)
    assert re.fullmatch(r"\d\d:\d\d:\d\d", head)
    assert line == f'worker-0 INFO worker.service: job {JOB}: attempt 2 request_id="r 1"'


def test_lines_made_meanwhile_have_the_context_and_later_ones_do_not() -> None:
    with concerning(request_id="r1"):
        with concerning(job="inner"):
            assert as_json(record("it"))["job"] == "inner"
        note(model="smollm2", call=None)
        line = as_json(record("it"))
        assert (line["request_id"], line["model"]) == ("r1", "smollm2")
        assert not {"job", "call"} & set(line)
    note(model="nobody's")
    assert "request_id" not in as_json(record("it"))
    assert "model" not in as_json(record("it"))


def test_one_job_is_a_field_and_several_are_a_list() -> None:
    with concerning(request_id="r1"):
        note_job("a")
        note_job("a")
        assert as_json(record("it"))["job"] == "a"
        note_job("b")
        note_job("c")
        line = as_json(record("it"))
        assert line["jobs"] == ["a", "b", "c"]
        assert "job" not in line
        assert as_text(record("it")).endswith(" jobs=a,b,c request_id=r1")


FORGED = "x\n12:00:00 gateway INFO api: all is well\r\x1b[2K\u2028\u202e\x85\0"


def test_no_value_can_pass_for_another_line() -> None:
    made = record("path %s", FORGED, **about(request_id=FORGED))
    line = as_text(made)
    assert line.isprintable()
    assert r"x\n12:00:00" in line
    assert as_json(made)["request_id"] == FORGED
    for row in as_text(failing(RuntimeError(FORGED))).splitlines()[1:]:
        assert row.startswith("    ")
        assert row.isprintable()


@pytest.mark.parametrize("text", ["é 你好 🙂", "a b", "\\n"])
def test_what_can_be_printed_stays(text: str) -> None:
    assert printable(text) == text


def test_a_lone_surrogate_breaks_no_line() -> None:
    made = record("%s", "\udc80", **about(job="\ud800"))
    assert as_text(made).encode()
    assert as_json(made)["job"] == "\ud800"


def test_a_traceback_is_a_field_of_the_same_line() -> None:
    line = as_json(failing(RuntimeError("no memory")))
    assert line["message"] == "it failed"
    assert "in failing" in line["traceback"]
    assert line["traceback"].endswith("RuntimeError: no memory")


def test_a_line_that_cannot_be_formatted_does_not_show_its_arguments() -> None:
    line = as_json(record("%d tokens", "my secret"))
    assert line["message"] == "a line of f.py:7 that could not be formatted"


def test_a_message_is_cut() -> None:
    message = as_json(record("%s", "a" * 100_000))["message"]
    assert message.endswith("a... (100000 characters)")
    assert len(message) < 5000


def test_what_asyncio_quotes_is_left_out() -> None:
    words = "Task exception was never retrieved\nfuture: <Task exception=ValueError('secret')>"
    assert as_json(record(words, name="asyncio"))["message"] == "Task exception was never retrieved"
    words = "Exception in callback done('secret') at x.py:1"
    assert as_json(record(words, name="asyncio"))["message"] == "Exception in callback done"


def test_an_exception_among_the_arguments_is_told_as_in_a_traceback() -> None:
    made = record("it failed: %s, %r", ValueError("secret"), OSError("no space"))
    assert as_json(made)["message"] == "it failed: ValueError, OSError: no space"
    assert as_json(record(KeyError("secret")))["message"] == "KeyError"
    made = record("it failed", **about(error=ValueError("secret")))
    assert as_json(made)["error"] == "ValueError"
