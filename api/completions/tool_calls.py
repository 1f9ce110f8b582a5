"""Finds the calls of tools in what a model writes, while it writes. Pure.

A call is told when it is whole, so that what turns out to be broken can still be content, and a stream
says what the answer at once would say.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, Protocol

from api.completions.cut_call import cut_call, is_begun, is_tag_begun

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_STRING = re.compile(r'"(?:[^"\\]|\\.)*("?)', re.DOTALL)
_MARK = re.compile(rf'"|{re.escape(_CLOSE)}')


@dataclass(frozen=True, slots=True)
class ContentDelta:
    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """``id`` and ``name`` are in the first one of a call, pieces of ``arguments`` in those after it."""

    index: int
    arguments: str = ""
    id: str | None = None
    name: str | None = None


Delta = ContentDelta | CallDelta
_Found = tuple[str, str]  # name, and arguments as JSON


class Parser(Protocol):
    @property
    def num_calls(self) -> int: ...
    def feed(self, text: str) -> list[Delta]: ...
    def finish(self, *, is_cut: bool = False) -> list[Delta]:
        """``is_cut``: the model would have gone on."""
        ...


def parser_for(tool_format: str | None, call_id: str) -> Parser:
    """``None``: no tools were given, and all is content. ``call_id`` makes the ids of the calls."""
    if tool_format is None:
        return PlainText()
    return HermesCalls(call_id) if tool_format == "hermes" else Llama3Calls(call_id)


class PlainText:
    num_calls = 0

    def feed(self, text: str) -> list[Delta]:
        return _content(text)

    def finish(self, *, is_cut: bool = False) -> list[Delta]:  # noqa: ARG002
        return []


class _Calls:
    def __init__(self, call_id: str) -> None:
        self._call_id = call_id
        self._held = ""
        self.num_calls = 0

    def _tell(self, found: _Found) -> list[Delta]:
        name, arguments = found
        index = self.num_calls
        self.num_calls += 1
        words = hashlib.sha256(f"{self._call_id}/{index}".encode()).hexdigest()
        return [CallDelta(index, "", f"call_{words[:24]}", name), CallDelta(index, arguments)]


class HermesCalls(_Calls):
    """``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``, between and behind other text.
    Spaces around a call are of the format, not of the content."""

    def __init__(self, call_id: str) -> None:
        super().__init__(call_id)
        self._is_behind_call = False

    def feed(self, text: str) -> list[Delta]:
        self._held += text
        deltas: list[Delta] = []
        while True:
            opening = self._held.find(_OPEN)
            if opening < 0:
                return deltas + self._content(self._held[: _free(self._held)])
            end = _end_of_call(self._held, opening + len(_OPEN))
            if end is None:
                return deltas + self._content(self._held[: len(self._held[:opening].rstrip())])
            found = _call(self._held[opening + len(_OPEN) : end], "arguments")
            if found is None:
                deltas += self._content(self._held[: end + len(_CLOSE)])
                continue
            deltas += self._content(self._held[: len(self._held[:opening].rstrip())])
            self._held = self._held[self._held.index(_OPEN) + end - opening + len(_CLOSE) :]
            self._is_behind_call = True
            deltas += self._tell(found)

    def finish(self, *, is_cut: bool = False) -> list[Delta]:
        """What is held begins with a tag, or the beginning of one, behind spaces of it."""
        text, begun = self._held, self._held.lstrip()
        call = begun.removeprefix(_OPEN)
        if not is_cut or not (is_tag_begun(begun, _OPEN) or (call != begun and is_begun(call))):
            return self._content(text)
        self._held = ""
        found = cut_call(call, "arguments")
        return [] if found is None else self._tell(found)

    def _content(self, text: str) -> list[Delta]:
        """Of what is held, the first part is content."""
        self._held = self._held[len(text) :]
        if self._is_behind_call:
            text = text.lstrip()
            self._is_behind_call = not text
        return _content(text)


class Llama3Calls(_Calls):
    """The whole answer is ``{"name": ..., "parameters": {...}}``, or several behind each other."""

    def __init__(self, call_id: str) -> None:
        super().__init__(call_id)
        self._is_content = False

    def feed(self, text: str) -> list[Delta]:
        self._held += text
        begun = self._held.lstrip()
        if begun and not begun.startswith("{"):
            self._is_content = True
        if not self._is_content:
            return []
        text, self._held = self._held, ""
        return _content(text)

    def finish(self, *, is_cut: bool = False) -> list[Delta]:
        calls, rest = _calls_in_a_row(self._held)
        is_begun_call = is_cut and rest != "" and is_begun(rest)
        if (rest or not calls) and not is_begun_call:
            return _content(self._held)
        if rest and (cut := cut_call(rest, "parameters")):
            calls.append(cut)
        return [delta for found in calls for delta in self._tell(found)]


def _content(text: str) -> list[Delta]:
    return [ContentDelta(text)] if text else []


def _free(text: str) -> int:
    """How many characters cannot be the beginning of a call, nor the spaces before one."""
    end = len(text)
    for length in range(min(len(_OPEN) - 1, len(text)), 0, -1):
        if text.endswith(_OPEN[:length]):
            end -= length
            break
    return len(text[:end].rstrip())


def _end_of_call(text: str, start: int) -> int | None:
    """Where its closing tag begins; one inside of a text of its JSON is none."""
    while mark := _MARK.search(text, start):
        if mark[0] == _CLOSE:
            return mark.start()
        string = _STRING.match(text, mark.start())
        if string is None or not string[1]:
            return None
        start = string.end()
    return None


def _call(text: str, arguments: str) -> _Found | None:
    try:
        return _found(json.loads(text, parse_constant=_refuse), arguments)
    except (ValueError, RecursionError):
        return None


def _calls_in_a_row(text: str) -> tuple[list[_Found], str]:
    """And what is behind them and no call."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    calls: list[_Found] = []
    rest = text.strip()
    while rest:
        try:
            value, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError):
            break
        found = _found(value, "parameters")
        if found is None:
            break
        calls.append(found)
        rest = rest[end:].lstrip().removeprefix(";").lstrip()
    return calls, rest


def _found(value: Any, field: str) -> _Found | None:
    if not isinstance(value, dict) or not isinstance(name := value.get("name"), str) or not name:
        return None
    arguments = value.get(field, {})
    if not isinstance(arguments, dict):
        return None
    try:
        name.encode()
    except UnicodeEncodeError:
        return None
    text = json.dumps(arguments, ensure_ascii=False)
    # Half of a character, which the model may have escaped, can only stay escaped.
    is_whole = not any("\ud800" <= char <= "\udfff" for char in text)
    return name, text if is_whole else json.dumps(arguments)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
