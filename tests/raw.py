"""A connection that sends what no client library would."""

import json
import select
import socket
from http.client import parse_headers
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

DEADLINE_S = 30.0


class RawConnection:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname and parts.port
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=DEADLINE_S)
        self._reader = self.socket.makefile("rb")  #: one, since it may have read ahead

    def __enter__(self) -> "RawConnection":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._reader.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_for_ever(self, piece: bytes, max_bytes: int = 100_000_000) -> None:
        """Until the other side has had enough of it: it answers, or closes."""
        sent_bytes = 0
        while not self.has_something_to_read():
            try:
                sent_bytes += self.socket.send(piece)
            except (BrokenPipeError, ConnectionResetError):
                return
            assert sent_bytes < max_bytes, "it takes everything"

    def answer(self) -> tuple[int, Any]:
        """Status and body of the next response."""
        line = self._reader.readline()
        assert line.startswith(b"HTTP/1.1 "), f"no response: {line!r}"
        headers = parse_headers(self._reader)
        body = self._reader.read(int(headers["content-length"]))
        return int(line.split()[1]), json.loads(body)

    def is_closed(self) -> bool:
        """Waits for what comes next, which has to be the end."""
        try:
            return self._reader.read(1) == b""
        except ConnectionResetError:
            return True

    def has_something_to_read(self) -> bool:
        """Its end, too."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(0))
