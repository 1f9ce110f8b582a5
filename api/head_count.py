"""How much a connection has sent for the head of a request. Pure: told of bytes, it says too many.

It is counted twice. What the parser shows of a head is exact, but it shows a header only when that is
whole; so what came since it last showed anything counts as well.
"""

#: What the parser does not show of a head and of a header: spaces, version, colon, ends of lines.
BYTES_PER_HEAD = len("GET  HTTP/1.1\r\n\r\n")
BYTES_PER_HEADER = len(": \r\n")


class HeadCount:
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._shown_bytes = 0
        self._loose_bytes = 0
        self.is_in_body = False

    @property
    def has_begun(self) -> bool:
        """A head has begun that is not whole. Empty lines before it are of it."""
        return not self.is_in_body and bool(self._shown_bytes or self._loose_bytes)

    @property
    def is_too_large(self) -> bool:
        """To be asked while the parser reads."""
        return self._shown_bytes > self._max_bytes

    @property
    def is_endless(self) -> bool:
        """To be asked when it has read all that came: before, a body may stand behind the head."""
        return self._loose_bytes > self._max_bytes

    def received(self, num_bytes: int) -> None:
        """Before the parser has them. Where it finds the end of a head or a piece of body in them,
        none of them counts, since it does not say how far it came: so a head that begins behind
        another request may be larger by one read."""
        self._loose_bytes += num_bytes

    def began(self) -> None:
        self._shown_bytes = BYTES_PER_HEAD

    def showed_url(self, num_bytes: int) -> None:
        self._shown_bytes += num_bytes

    def showed_header(self, num_bytes: int) -> None:
        """Trailers too, which come after the body: they count with the headers."""
        self._shown_bytes += num_bytes + BYTES_PER_HEADER

    def head_ended(self) -> None:
        self.is_in_body = True
        self._loose_bytes = 0

    def showed_body(self) -> None:
        self._loose_bytes = 0

    def message_ended(self) -> None:
        self.is_in_body = False
        self._shown_bytes = self._loose_bytes = 0
