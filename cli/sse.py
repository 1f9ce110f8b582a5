"""Server-sent events as lines come in: the few rules of the format that a reader needs. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    event: str
    data: str
    id: str


def lines_of(pieces: Iterable[str]) -> Iterator[str]:
    """Without their ends. NOTE: not as ``str.splitlines`` and httpx have them, for which U+2028 and others
    that may stand in JSON end one."""
    rest = ""
    for piece in pieces:
        *lines, rest = (rest + piece).split("\n")
        yield from (line.removesuffix("\r") for line in lines)


def read_events(lines: Iterable[str]) -> Iterator[ServerSentEvent]:
    """``lines`` without their ends. An event that is cut off before its empty line is not given."""
    event, event_id = "message", ""
    data: list[str] = []
    for line in lines:
        if not line:
            if data:
                yield ServerSentEvent(event, "\n".join(data), event_id)
            event, data = "message", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            event = value
        elif name == "id":
            event_id = value
        elif name == "data":
            data.append(value)
