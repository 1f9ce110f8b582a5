import json

import pytest

from api.sse import Position, render
from shared.errors import BadRequest
from shared.protocol import (
    EndEvent,
    FinishReason,
    JobStatus,
    StartEvent,
    Timings,
    TokenEvent,
    Usage,
)

END = EndEvent(
    status=JobStatus.COMPLETED,
    finish_reason=FinishReason.STOP,
    usage=Usage(prompt_tokens=2, completion_tokens=3),
    timings=Timings(total_s=1.0),
    seed=1,
    worker="worker-0",
    attempts=1,
)


def token(index: int, text: str, count: int = 1) -> TokenEvent:
    return TokenEvent(index=index, tokens=tuple(range(count)), text=text, attempt=1)


def test_start_and_token_frames() -> None:
    start = render(StartEvent(prompt_tokens=7), 0)
    assert start.data == b'event: start\nid: 0\ndata: {"prompt_tokens":7}\n\n'
    frame = render(token(4, "a", 2), 6)
    assert frame.data == b'event: token\nid: 6\ndata: {"text":"a","index":4,"count":2}\n\n'


@pytest.mark.parametrize("text", ["a\nb\r\n", "é漢😀", "\u2028", '"\\', "\x00", ""])
def test_any_text_is_one_line_and_comes_back_as_it_was(text: str) -> None:
    data = render(token(0, text), 1).data.decode()
    event, event_id, payload = data.removesuffix("\n\n").split("\n")
    assert (event, event_id) == ("event: token", "id: 1")
    assert json.loads(payload.removeprefix("data: "))["text"] == text


def test_the_end_frame_has_what_a_client_needs() -> None:
    frame = render(END, 3)
    head, data = frame.data.decode().split("\ndata: ")
    assert head == "event: end\nid: 3.end"
    assert set(json.loads(data)) == {"status", "finish_reason", "usage", "timings", "error"}


def test_a_position_leaves_out_what_was_seen() -> None:
    frames = [render(StartEvent(prompt_tokens=1), 0), render(token(0, "ab", 2), 2)]
    frames += [render(token(2, "c"), 3), render(END, 3)]

    def seen_after(position: Position) -> list[int]:
        return [i for i, frame in enumerate(frames) if frame.is_after(position)]

    assert seen_after(Position()) == [0, 1, 2, 3]
    assert seen_after(Position(0)) == [1, 2, 3]
    assert seen_after(Position(2)) == [2, 3]
    assert seen_after(Position(9)) == [3]


def test_positions_are_read_from_ids() -> None:
    assert Position.parse("12", "from") == Position(12)
    assert Position.parse("12.end", "from") == Position(12, has_end=True)


@pytest.mark.parametrize("text", ["", "-1", "x", "1.5", "1.end2", "٣", "1" * 13])
def test_a_strange_position_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadRequest, match=r"^from: ") as caught:
        Position.parse(text, "from")
    assert caught.value.field == "from"
