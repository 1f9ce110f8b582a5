from api.followed_job import FollowedJob
from shared.protocol import Event, StartEvent, TokenEvent, to_wire
from tests.unit.api.test_sse import END


def add(job: FollowedJob, *events: tuple[bytes, Event]) -> None:
    for kind, event in events:
        job.add(b"1-1", {b"k": kind, b"d": to_wire(event).encode()})


def token(index: int, text: str) -> TokenEvent:
    return TokenEvent(index=index, tokens=(1,), text=text, attempt=1)


def test_what_is_written_again_after_redis_lost_it_is_sent_once() -> None:
    job = FollowedJob("j")
    start = (b"start", StartEvent(prompt_tokens=1))
    add(job, start, (b"token", token(0, "a")), (b"token", token(1, "b")))
    add(job, start, (b"token", token(1, "b")), (b"token", token(2, "c")), (b"end", END))
    add(job, (b"end", END))
    assert [frame.end_index for frame in job.frames] == [0, 1, 2, 3, 3]
    assert job.is_over


def test_an_entry_that_cannot_be_read_is_passed_over() -> None:
    job = FollowedJob("j")
    job.add(b"1-1", {b"k": b"strange", b"d": b"{}"})
    job.add(b"1-2", {b"k": b"token", b"d": b"not json"})
    assert job.frames == []
    assert job.cursor == b"1-2"
