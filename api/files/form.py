"""An upload as ``multipart/form-data``, taken apart while it comes: fields are small and kept, the
content of the file is handed on. Pure."""

from dataclasses import dataclass, field
from typing import Any

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from shared.errors import BadRequest

_FIELDS = ("purpose", "expires_after[anchor]", "expires_after[seconds]")
_MAX_FIELD_BYTES = 200
_MAX_NAME_CHARS = 255


@dataclass(slots=True)
class UploadForm:
    """``take`` gives what has come of the file since it was asked last."""

    content_type: str
    fields: dict[str, str] = field(default_factory=dict)
    filename: str | None = None
    is_whole: bool = False
    _pieces: list[bytes] = field(default_factory=list)
    _parser: MultipartParser = field(init=False)
    _name: str = ""
    _value: bytes = b""
    _header: bytes = b""
    _header_value: bytes = b""

    def __post_init__(self) -> None:
        kind, options = parse_options_header(self.content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise BadRequest("the body must be multipart/form-data with `file` and `purpose`")
        callbacks: dict[str, Any] = {
            "on_part_begin": self._begin,
            "on_header_field": self._add_header,
            "on_header_value": self._add_header_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._begin_part,
            "on_part_data": self._add,
            "on_part_end": self._end,
            "on_end": self._finish,
        }
        try:
            self._parser = MultipartParser(boundary, callbacks)  # type: ignore[arg-type]
        except Exception:  # a boundary that is too long
            raise BadRequest("the boundary of the form is not valid") from None

    def feed(self, piece: bytes) -> None:
        """Raises ``BadRequest``."""
        try:
            self._parser.write(piece)
        except MultipartParseError as error:
            raise BadRequest(f"the form cannot be read: {error}") from None

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces.clear()
        return taken

    def _begin(self) -> None:
        self._name, self._value, self._header, self._header_value = "", b"", b"", b""

    def _add_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            _, options = parse_options_header(self._header_value)
            self._name = options.get(b"name", b"").decode(errors="replace")
            filename = options.get(b"filename")
            if self._name == "file":
                self._set_filename((filename or b"").decode(errors="replace"))
        self._header, self._header_value = b"", b""

    def _set_filename(self, name: str) -> None:
        if self.filename is not None:
            raise BadRequest("file: must be given once", field="file")
        kept = name.replace("\\", "/").rsplit("/", 1)[-1]
        self.filename = "".join(c for c in kept if c.isprintable())[:_MAX_NAME_CHARS] or "upload"

    def _begin_part(self) -> None:
        name = self._name[:100]
        if name == "file":
            return
        if name not in _FIELDS:
            raise BadRequest(f"unknown field `{name}`", field=name)
        if name in self.fields:
            raise BadRequest(f"{name}: must be given once", field=name)

    def _add(self, data: bytes, start: int, end: int) -> None:
        if self._name == "file":
            self._pieces.append(data[start:end])
            return
        self._value += data[start:end]
        if len(self._value) > _MAX_FIELD_BYTES:
            words = f"{self._name}: must have at most {_MAX_FIELD_BYTES} bytes"
            raise BadRequest(words, field=self._name)

    def _end(self) -> None:
        if self._name != "file":
            self.fields[self._name] = self._value.decode(errors="replace")

    def _finish(self) -> None:
        self.is_whole = True
