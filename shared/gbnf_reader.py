"""Reads GBNF, llama.cpp's notation of grammars, by its rules: what it takes is taken here, but for tokens.
Pure. What llama.cpp would take by accident, as a range that ends before it begins, is refused."""

import re
from dataclasses import dataclass
from typing import NoReturn

from shared.errors import BadRequest

_SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_SPACE_OR_NEWLINE = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_NUMBER = re.compile(r"[0-9]{1,9}")
_NEWLINE = re.compile(r"\r\n?|\n")
_HEX = {"x": 2, "u": 4, "U": 8}
_PLAIN = {"t": "\t", "r": "\r", "n": "\n"} | {char: char for char in '\\"[]-'}
_SHOWN_CHARS = 20


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of the ranges, whose ends are of them; ``is_negated``: one of all others."""

    ranges: tuple[tuple[str, str], ...]
    is_negated: bool


@dataclass(frozen=True, slots=True)
class Ref:
    name: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """``most``: ``None`` is without end."""

    part: "Part"
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Row:
    parts: tuple["Part", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    parts: tuple["Part", ...]


Part = Text | Chars | Ref | Repeat | Row | Choice
NOTHING = Text("")
ANY = Chars((), is_negated=True)


def refuse(reason: str) -> NoReturn:
    raise BadRequest(f"grammar: {reason}", field="grammar")


def read_gbnf(text: str) -> dict[str, Part]:
    """The rules by name; of two of one name the last one holds, as for llama.cpp. Raises ``BadRequest``,
    and ``RecursionError`` where groups are nested too deeply."""
    return _Reader(text).rules()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def rules(self) -> dict[str, Part]:
        found: dict[str, Part] = {}
        self._skip(_SPACE_OR_NEWLINE)
        while self._next:
            name = self._word(_NAME, "the name of a rule")
            self._skip(_SPACE)
            self._expect("::=")
            self._skip(_SPACE_OR_NEWLINE)
            found[name] = self._choice(is_nested=False)
            if self._next and not self._word_at(_NEWLINE):
                self._fail("expected a newline or the end of the rule")
            self._skip(_SPACE_OR_NEWLINE)
        return found

    def _choice(self, is_nested: bool) -> Part:
        parts = [self._row(is_nested)]
        while self._next == "|":
            self._at += 1
            self._skip(_SPACE_OR_NEWLINE)
            parts.append(self._row(is_nested))
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _row(self, is_nested: bool) -> Part:
        space = _SPACE_OR_NEWLINE if is_nested else _SPACE
        parts: list[Part] = []
        while (part := self._item(parts, space)) is not None:
            parts.append(part)
            self._skip(space)
        return parts[0] if len(parts) == 1 else Row(tuple(parts))

    def _item(self, before: list[Part], space: re.Pattern[str]) -> Part | None:
        """The next part of a row; one that repeats the part before takes it out of there."""
        char = self._next
        match char:
            case '"':
                return self._literal()
            case "[":
                return self._chars()
            case ".":
                self._at += 1
                return ANY
            case "(":
                return self._group()
            case "<" | "!":
                self._fail("a token (<...>) cannot be asked for here: write the text that it has")
            case "*" | "+" | "?" | "{":
                if not before:
                    self._fail(f"there is nothing before {char!r} that could be repeated")
                least, most = self._times(space)
                return Repeat(before.pop(), least, most)
        name = self._word_at(_NAME)
        return Ref(name) if name else None

    def _group(self) -> Part:
        self._at += 1
        self._skip(_SPACE_OR_NEWLINE)
        part = self._choice(is_nested=True)
        self._expect(")")
        return part

    def _times(self, space: re.Pattern[str]) -> tuple[int, int | None]:
        start, char = self._at, self._next
        self._at += 1
        if char != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        self._skip(space)
        least = int(self._word(_NUMBER, "a number (of no more than 9 digits)"))
        self._skip(space)
        most: int | None = least
        if self._next == ",":
            self._at += 1
            self._skip(space)
            number = self._word_at(_NUMBER)
            most = int(number) if number else None
            self._skip(space)
        self._expect("}")
        if most is not None and most < least:
            self._at = start
            self._fail(f"{{{least},{most}}} has more at least than at most")
        return least, most

    def _literal(self) -> Part:
        self._at += 1
        chars = []
        while self._next != '"':
            chars.append(self._char())
        self._at += 1
        return Text("".join(chars))

    def _chars(self) -> Part:
        self._at += 1
        is_negated = self._next == "^"
        self._at += is_negated
        ranges: list[tuple[str, str]] = []
        while self._next != "]":
            start, first = self._at, self._char()
            last = first
            if self._next == "-" and self._text[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                last = self._char()
            if last < first:
                self._at = start
                self._fail("a range ends before it begins")
            ranges.append((first, last))
        self._at += 1
        return Chars(tuple(ranges), is_negated) if ranges else NOTHING

    def _char(self) -> str:
        char, kind = self._next, self._text[self._at + 1 : self._at + 2]
        if not char:
            self._fail("unexpected end of input")
        if char != "\\":
            self._at += 1
            return char
        if kind in _PLAIN:
            self._at += 2
            return _PLAIN[kind]
        if kind not in _HEX:
            self._fail(f"unknown escape {char + kind}")
        digits = self._text[self._at + 2 : self._at + 2 + _HEX[kind]]
        if not re.fullmatch(rf"[0-9A-Fa-f]{{{_HEX[kind]}}}", digits):
            self._fail(f"\\{kind} needs {_HEX[kind]} hexadecimal digits")
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            self._fail(f"\\{kind}{digits} is no character")
        self._at += 2 + _HEX[kind]
        return chr(code)

    @property
    def _next(self) -> str:
        """'' at the end."""
        return self._text[self._at : self._at + 1]

    def _skip(self, space: re.Pattern[str]) -> None:
        self._word_at(space)

    def _word_at(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        word = found[0] if found else ""
        self._at += len(word)
        return word

    def _word(self, pattern: re.Pattern[str], what: str) -> str:
        return self._word_at(pattern) or self._fail(f"expected {what}")

    def _expect(self, word: str) -> None:
        if not self._text.startswith(word, self._at):
            self._fail(f"expected {word}")
        self._at += len(word)

    def _fail(self, reason: str) -> NoReturn:
        line = self._text.count("\n", 0, self._at) + 1
        rest = self._text[self._at : self._at + _SHOWN_CHARS]
        refuse(f"{reason} in line {line}, at {rest!r}" if rest else f"{reason} in line {line}")
