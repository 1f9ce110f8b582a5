"""A log record as one line: of JSON, or for people. Nothing in it can pass for another line.

What a record is about stands in its ``fields`` and in the context. Exceptions are told by ``causes``
alone, whether they are an argument or have a traceback.
"""

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

from shared.logs.causes import Told, traceback_of
from shared.logs.context import Fields, current_fields

#: Shown to people, who read the rest in the message.
_IDS = ("job", "jobs", "worker", "request_id", "batch", "call", "model")
_MAX_MESSAGE_CHARS = 4000
#: asyncio puts what a callback was called with, and a task's result, into its message.
_ASYNCIO_ENDS = re.compile(r"[<(\n]")
_PLAIN = re.compile(r"[^\s\"=]+")


class _Format(logging.Formatter):
    def __init__(self, process: str, constants: Fields) -> None:
        super().__init__()
        self._process = process
        self._constants = constants

    @staticmethod
    def _fields(record: logging.LogRecord) -> dict[str, Any]:
        return {**current_fields(), **getattr(record, "fields", {})}


class JsonFormat(_Format):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat("T", "milliseconds")[:-6]
            + "Z",
            "level": record.levelname.lower(),
            "process": self._process,
            "logger": record.name,
            "message": _message(record),
        }
        for name, value in {**self._constants, **self._fields(record)}.items():
            line.setdefault(name, value)
        if trace := _trace(record):
            line["traceback"] = trace
        # NOTE: ASCII, so that neither U+2028 nor a lone surrogate ends or breaks a line.
        return json.dumps(line, default=_shown)


class TextFormat(_Format):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        message, fields = printable(_message(record)), self._fields(record)
        ids = [
            f" {name}={_word(fields[name])}"
            for name in _IDS
            if name in fields and _shown(fields[name]) not in message
        ]
        head = f"{at} {self._process} {record.levelname} {record.name}: {message}{''.join(ids)}"
        # Indented, so that no line of it can pass for an event.
        rest = [f"\n    {printable(row)}" for row in _trace(record).splitlines()]
        return head + "".join(rest)


def printable(text: str) -> str:
    """With escapes for whatever a terminal, or a reader of lines, would take as more than a character."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _message(record: logging.LogRecord) -> str:
    try:
        if record.name == "asyncio":
            return _ASYNCIO_ENDS.split(str(record.msg))[0].strip()
        message = _told(record.msg)
        args = record.args
        if isinstance(args, tuple) and args:
            message = str(message) % tuple(_told(arg) for arg in args)
        elif args:
            message = str(message) % args
        text = str(message)
    except Exception:
        # Its arguments may be anything.
        return f"a line of {record.pathname}:{record.lineno} that could not be formatted"
    if len(text) > _MAX_MESSAGE_CHARS:
        return f"{text[:_MAX_MESSAGE_CHARS]}... ({len(text)} characters)"
    return text


def _told(value: Any) -> Any:
    return Told(value) if isinstance(value, BaseException) else value


def _trace(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    return traceback_of(error) if error is not None else ""


def _word(value: Any) -> str:
    text = printable(_shown(value))
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_shown, value))
    return str(_told(value))
