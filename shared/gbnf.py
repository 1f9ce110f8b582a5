"""GBNF, llama.cpp's notation of grammars, as llguidance's. Pure.

What compiles the output descends from rule to rule on the stack: so both the text and the number of
rules are bounded. Rules get names of ours: llguidance has words of its own, and writes names in two ways.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from shared.gbnf_reader import (
    NOTHING,
    Chars,
    Choice,
    Part,
    Ref,
    Repeat,
    Row,
    Text,
    read_gbnf,
    refuse,
)

MAX_GRAMMAR_CHARS = 32_768
MAX_RULES = 256
#: Of a rule that is a regular expression, and of a whole grammar that is one, which a worker compiles
#: beforehand: what is larger is taken part by part.
_MAX_REGEX_PARTS = 10_000
_MAX_ROOT_PARTS = 1000
_REASON_CHARS = 500
#: Where something is in what we made of the grammar.
_PLACE = re.compile(r"^(at )?\d+\(\d+\): | \(at .*", re.DOTALL)


# The gateway asks once for a request, a worker once for each of its choices.
@lru_cache(maxsize=32)
def lark_of(text: str) -> str:
    """Raises ``BadRequest``."""
    if len(text) > MAX_GRAMMAR_CHARS:
        refuse(f"must have at most {MAX_GRAMMAR_CHARS} characters (has {len(text)})")
    num_rules = text.count("::=")
    if num_rules > MAX_RULES:
        refuse(f"must have at most {MAX_RULES} rules (has {num_rules})")
    try:
        rules = read_gbnf(text)
        names = _names(rules)
        lines = [f"{names[name]}: {_lark(part, names)}" for name, part in rules.items()]
    except RecursionError:
        refuse("is nested too deeply")
    return "\n".join(["%llguidance {}", f"start: {names['root']}", *lines, ""])


def told(problem: str) -> str:
    """A problem of llguidance's without the text that we made of the grammar, which nobody has seen."""
    return _PLACE.sub("", problem.partition("\n")[0])[:_REASON_CHARS]


def _names(rules: Mapping[str, Part]) -> dict[str, str]:
    """In capitals those that are a regular expression: llguidance takes it in one step, and takes as much
    of a text as it can, so that what follows may find nothing left. The root, if it is one, is exact."""
    if "root" not in rules:
        refuse("there is no rule of the name root")
    uses = {name: set(_refs(part)) for name, part in rules.items()}
    for name, used in uses.items():
        if missing := sorted(used - rules.keys()):
            refuse(f"there is no rule {missing[0]!r}, which {name!r} refers to")
    regular = _regular(rules, uses)
    return {name: ("R" if name in regular else "r") + str(i) for i, name in enumerate(rules)}


def _regular(rules: Mapping[str, Part], uses: Mapping[str, set[str]]) -> set[str]:
    """Those that come to an end without themselves, and are not too large."""
    sizes: dict[str, int] = {}
    is_growing = True
    while is_growing:
        is_growing = False
        for name in rules.keys() - sizes.keys():
            if uses[name] <= sizes.keys():
                size = _size(rules[name], sizes)
                if size <= (_MAX_ROOT_PARTS if name == "root" else _MAX_REGEX_PARTS):
                    sizes[name], is_growing = size, True
    return set(sizes)


def _size(part: Part, sizes: Mapping[str, int]) -> int:
    """Of how many parts it is, where each reference and repetition is written out."""
    match part:
        case Ref(name):
            return sizes[name]
        case Repeat(inner, least, most):
            return _size(inner, sizes) * max(1, most or least)
        case Row(parts) | Choice(parts):
            return sum(_size(inner, sizes) for inner in parts)
    return 1


def _refs(part: Part) -> Iterator[str]:
    match part:
        case Ref(name):
            yield name
        case Repeat(inner):
            yield from _refs(inner)
        case Row(parts) | Choice(parts):
            for inner in parts:
                yield from _refs(inner)


def _lark(part: Part, names: Mapping[str, str]) -> str:
    """A part of more than one word stands in parentheses, so that anything may be around it."""
    match part:
        case Text(text):
            return json.dumps(text, ensure_ascii=False)
        case Chars(ranges, is_negated):
            return _regex(ranges, is_negated)
        case Ref(name):
            return names[name]
        case Repeat(inner, least, most):
            if most == 0 or inner == NOTHING:
                return _lark(NOTHING, names)
            return f"({_lark(inner, names)}){_times(least, most)}"
        case Row(parts):
            return f"({' '.join(_lark(inner, names) for inner in parts or (NOTHING,))})"
        case Choice(parts):
            return f"({' | '.join(_lark(inner, names) for inner in parts)})"


def _times(least: int, most: int | None) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return short.get((least, most)) or f"{{{least},{'' if most is None else most}}}"


def _regex(ranges: tuple[tuple[str, str], ...], is_negated: bool) -> str:
    if not ranges:
        return "/(?s:.)/"
    inner = "".join(f"\\x{{{ord(first):x}}}-\\x{{{ord(last):x}}}" for first, last in ranges)
    return f"/[{'^' if is_negated else ''}{inner}]/"
