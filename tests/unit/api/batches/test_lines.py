"""What a line of a batch may be, and what is told of one that is wrong."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from api.batches.lines import MAX_PROBLEMS, BadLine, Checker, parse_line
from api.batches.reader import LineReader

CHAT: Any = "/v1/chat/completions"
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}]}


def raw(**changes: Any) -> bytes:
    row = {"custom_id": "a", "method": "POST", "url": CHAT, "body": BODY} | changes
    return json.dumps({name: value for name, value in row.items() if value is not None}).encode()


def test_a_line_is_read_as_a_request() -> None:
    line = parse_line(raw(body=BODY | {"n": 2, "seed": 7, "model": "m"}), CHAT)
    assert (line.custom_id, line.call.model) == ("a", "m")
    assert [job.seed for job in line.call.jobs] == [7, 8]


def test_an_emoji_that_json_escapes_is_no_lone_surrogate() -> None:
    line = parse_line(raw(custom_id="\U0001f600"), CHAT)
    assert line.custom_id == "\U0001f600"


@pytest.mark.parametrize(
    ("line", "code", "param"),
    [
        (b"{", "invalid_json_line", None),
        (b"\xff", "invalid_json_line", None),
        (b"[1]", "invalid_json_line", None),
        (b"[" * 100_000, "invalid_json_line", None),
        (raw(body={"temperature": float("nan")}), "invalid_json_line", None),
        (raw(surprise=1), "unknown_parameter", "surprise"),
        (raw(custom_id=None), "missing_required_parameter", "custom_id"),
        (raw(custom_id=""), "invalid_custom_id", "custom_id"),
        (raw(custom_id=5), "invalid_custom_id", "custom_id"),
        (raw(custom_id="x" * 513), "invalid_custom_id", "custom_id"),
        (raw(custom_id="\ud800"), "invalid_custom_id", "custom_id"),
        (raw(method="GET"), "invalid_method", "method"),
        (raw(url="/v1/completions"), "url_mismatch", "url"),
        (raw(body=[]), "invalid_request", "body"),
        (raw(body={}), "invalid_request", "messages"),
        (raw(body=BODY | {"surprise": 1}), "invalid_request", "surprise"),
        (raw(body=BODY | {"store": True}), "unsupported_parameter", "store"),
        (raw(body=BODY | {"stream": True}), "invalid_request", "stream"),
        (raw(body=BODY | {"background": True}), "invalid_request", "background"),
        (raw(body=BODY | {"priority": "high"}), "invalid_request", "priority"),
        (raw(body=BODY | {"grammar": "root ::= x"}), "invalid_request", "grammar"),
    ],
)
def test_a_bad_line_is_refused_by_name(line: bytes, code: str, param: str | None) -> None:
    with pytest.raises(BadLine) as refused:
        parse_line(line, CHAT)
    assert (refused.value.code, refused.value.param) == (code, param)
    assert param is None or param in refused.value.message


def test_all_that_is_wrong_with_a_file_is_found_with_its_lines() -> None:
    checker = Checker(CHAT, 100)
    for line in (raw(), b"  \n", b"{", raw(), raw(custom_id="b")):
        checker.feed(line)
    checker.feed(b"", is_too_long=True)
    checker.finish()
    told = [(problem.line, problem.code) for problem in checker.problems]
    assert told == [(3, "invalid_json_line"), (4, "duplicate_custom_id"), (6, "line_too_long")]
    assert (checker.total, checker.asked) == (5, {None: 1})


def test_a_file_without_requests_is_refused() -> None:
    checker = Checker(CHAT, 100)
    checker.feed(b"\n")
    checker.finish()
    assert [problem.code for problem in checker.problems] == ["empty_file"]


def test_the_number_of_requests_is_bounded_and_so_are_the_problems() -> None:
    checker = Checker(CHAT, 2)
    for number in range(3):
        checker.feed(raw(custom_id=str(number)))
    assert checker.is_over
    assert [(p.line, p.code) for p in checker.problems] == [(3, "too_many_tasks")]
    checker = Checker(CHAT, 1000)
    for _ in range(200):
        checker.feed(b"{")
    assert checker.is_over
    assert len(checker.problems) == MAX_PROBLEMS


def test_lines_are_checked_without_being_held(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    with path.open("wb") as file:
        for number in range(5_000):
            body = {"messages": [{"role": "user", "content": "y" * 900}]}
            file.write(raw(custom_id=f"c{number}", body=body) + b"\n")
    checker = Checker(CHAT, 5_000)
    tracemalloc.start(1)
    with LineReader(path, 2000) as reader:
        while lines := reader.read(100):
            for line in lines:
                checker.feed(line.raw)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 4_500_000
    assert (checker.total, checker.problems) == (5_000, [])
    assert most_bytes < 1_500_000
