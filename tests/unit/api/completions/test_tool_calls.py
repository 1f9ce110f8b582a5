import json
import random
from collections.abc import Iterable
from itertools import pairwise

import pytest

from api.completions.tool_calls import CallDelta, ContentDelta, Delta, parser_for

Read = tuple[str, list[tuple[str | None, str | None, str]]]

ONE = '<tool_call>\n{"name": "weather", "arguments": {"city": "Genève", "days": 3}}\n</tool_call>'
TWO = '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>'
SLY = '<tool_call>{"name": "say", "arguments": {"text": "a \\" </tool_call> b"}}</tool_call>'
BROKEN = '<tool_call>{"name": "weather", "arguments": </tool_call>'
L3 = '{"name": "weather", "parameters": {"city": "Genève"}}'


def read(tool_format: str | None, pieces: Iterable[str], *, is_cut: bool = False) -> Read:
    """Content, and each call as id, name and arguments."""
    parser = parser_for(tool_format, "x")
    deltas: list[Delta] = [delta for piece in pieces for delta in parser.feed(piece)]
    deltas += parser.finish(is_cut=is_cut)
    content = "".join(delta.text for delta in deltas if isinstance(delta, ContentDelta))
    calls: list[tuple[str | None, str | None, str]] = []
    for delta in deltas:
        if not isinstance(delta, CallDelta):
            continue
        if delta.index == len(calls):
            calls.append((delta.id, delta.name, delta.arguments))
        else:
            call_id, name, arguments = calls[delta.index]
            assert delta.id is delta.name is None
            calls[delta.index] = (call_id, name, arguments + delta.arguments)
    assert parser.num_calls == len(calls)
    return content, calls


def named(found: Read) -> list[str | None]:
    return [name for _, name, _ in found[1]]


TEXTS = [
    ("hermes", "just text, no call"),
    ("hermes", "text with < and <tool and <tool_cal and spaces  \n "),
    ("hermes", ONE),
    ("hermes", f"Let me see.\n\n{ONE}\n{TWO}\n"),
    ("hermes", f"{ONE} and then {TWO} text "),
    ("hermes", SLY + "\n" + TWO),
    ("hermes", BROKEN + "\n" + TWO),
    ("hermes", ONE + "\n" + BROKEN),
    ("hermes", ONE[:-5]),
    ("hermes", '<tool_call>it is "never ended</tool_call>'),
    ("hermes", "<tool_call><tool_call></tool_call>"),
    ("llama3", "just text"),
    ("llama3", " \n" + L3 + "\n"),
    ("llama3", L3 + "; " + L3),
    ("llama3", '{"not": "a call"}'),
    ("llama3", " \n "),
    ("llama3", L3 + " and text"),
    ("llama3", L3[:-1]),
    (None, ONE),
]


@pytest.mark.parametrize(("tool_format", "text"), TEXTS)
def test_however_a_text_is_cut_it_is_read_the_same(tool_format: str | None, text: str) -> None:
    whole = read(tool_format, [text])
    assert read(tool_format, text) == whole
    chance = random.Random(1)
    for _ in range(50):
        cuts = sorted(chance.choices(range(len(text) + 1), k=chance.randint(1, 8)))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert read(tool_format, pieces) == whole


def test_calls_have_names_arguments_and_ids_of_their_own() -> None:
    content, calls = read("hermes", [f"Let me see.\n\n{ONE}\n{TWO}\n"])
    assert content == "Let me see."
    (one, name, arguments), (two, other, nothing) = calls
    assert (name, other) == ("weather", "time")
    assert json.loads(arguments) == {"city": "Genève", "days": 3}
    assert "Genève" in arguments
    assert nothing == "{}"
    assert one is not None
    assert two is not None
    assert one != two
    assert one.startswith("call_")
    assert len(one) == len("call_") + 24
    assert read("hermes", [ONE])[1][0][0] == one, "ids can be made again"


def test_a_closing_tag_in_a_text_of_the_arguments_ends_nothing() -> None:
    _, ((_, name, arguments),) = read("hermes", [SLY])
    assert name == "say"
    assert json.loads(arguments)["text"] == 'a " </tool_call> b'


@pytest.mark.parametrize(
    "broken",
    [
        BROKEN,
        ONE[:-3],
        '<tool_call>{"name": 5, "arguments": {}}</tool_call>',
        '<tool_call>{"name": "", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "f", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "f", "arguments": {"x": NaN}}</tool_call>',
        '<tool_call>{"name": "\\ud800", "arguments": {}}</tool_call>',
        "<tool_call>[" + "[" * 100_000 + "</tool_call>",
    ],
)
def test_a_broken_call_is_content(broken: str) -> None:
    assert read("hermes", [broken]) == (broken, [])


def test_a_call_behind_a_broken_one_is_found() -> None:
    content, calls = read("hermes", [BROKEN + "\n" + TWO])
    assert content == BROKEN
    assert [name for _, name, _ in calls] == ["time"]


def test_half_of_a_character_in_arguments_stays_escaped() -> None:
    text = '<tool_call>{"name": "f", "arguments": {"x": "\\ud83d"}}</tool_call>'
    _, ((_, _, arguments),) = read("hermes", [text])
    assert arguments == '{"x": "\\ud83d"}'


def test_content_is_not_held_back_longer_than_it_may_be_a_call() -> None:
    parser = parser_for("hermes", "x")
    assert parser.feed("a b") == [ContentDelta("a b")]
    assert parser.feed(" <tool") == []
    assert parser.feed("s") == [ContentDelta(" <tools")]


def test_an_answer_of_llama3_is_calls_or_text() -> None:
    assert named(read("llama3", [L3])) == ["weather"]
    assert named(read("llama3", [L3 + "; " + L3])) == ["weather", "weather"]
    assert read("llama3", [L3 + " and text"]) == (L3 + " and text", [])
    assert read("llama3", ['{"not": "a call"}']) == ('{"not": "a call"}', [])


def test_without_tools_all_is_content() -> None:
    assert read(None, [ONE]) == (ONE, [])


@pytest.mark.parametrize(
    ("tool_format", "text", "before"),
    [("hermes", ONE, ""), ("hermes", f"Let me see.\n{ONE}", "Let me see."), ("llama3", L3, "")],
)
def test_a_call_that_is_cut_is_never_content(tool_format: str, text: str, before: str) -> None:
    start = text.index("<tool" if tool_format == "hermes" else "{") + 5
    told = []
    for length in range(start, len(text) + 1):
        content, calls = read(tool_format, text[:length], is_cut=True)
        assert content == before
        assert read(tool_format, [text[:length]], is_cut=True) == (content, calls)
        told += [(name, arguments) for _, name, arguments in calls]
    assert {name for name, _ in told} == {"weather"}
    arguments = [words for _, words in told]
    assert arguments[0] == "{"
    assert all(longer.startswith(shorter) for shorter, longer in pairwise(arguments))
    assert json.loads(arguments[-1])["city"] == "Gen\u00e8ve"


def test_a_call_that_is_cut_behind_whole_ones_is_one_more() -> None:
    for tool_format, text in (("hermes", f"{TWO}\n{ONE[:60]}"), ("llama3", f"{L3}; {L3[:40]}")):
        _, calls = read(tool_format, text, is_cut=True)
        assert len(calls) == 2
        assert calls[0][0] != calls[1][0]
        assert not calls[1][2].endswith("}")


@pytest.mark.parametrize(
    ("tool_format", "text"),
    [
        ("hermes", "1 <"),
        ("hermes", "a <tool b"),
        ("hermes", '<tool_call>it is "never ended'),
        ("hermes", "just text "),
        ("llama3", '{"not": "a call'),
        ("llama3", L3 + " and text"),
        ("llama3", "text {"),
        ("llama3", " \n"),
        ("llama3", ""),
        (None, ONE[:40]),
    ],
)
def test_what_is_cut_and_no_call_stays_content(tool_format: str | None, text: str) -> None:
    assert read(tool_format, [text], is_cut=True) == (text, [])


@pytest.mark.parametrize("name", ['"\\ud800"', '""', '"\\x"', "5"])
def test_a_call_that_is_cut_and_has_no_name_is_left_out(name: str) -> None:
    text = f'<tool_call>{{"name": {name}, "arguments": {{"x": 1'
    assert read("hermes", [text], is_cut=True) == ("", [])


def test_spaces_alone_are_content() -> None:
    assert read("llama3", [" \n "]) == (" \n ", [])


def test_half_of_a_character_in_arguments_that_are_cut_stays_escaped() -> None:
    text = '<tool_call>{"name": "f", "arguments": {"x": "\\ud83d"}'
    for piece in (text, text[:-2]):
        _, ((_, _, arguments),) = read("hermes", [piece], is_cut=True)
        assert arguments == piece[piece.index('{"x"') :]
        assert arguments.encode()
