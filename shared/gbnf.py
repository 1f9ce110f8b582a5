"""GBNF, llama.cpp's notation of grammars, as llguidance's. Pure.

The converter looks at every part of every rule once for each rule, and what reads its output descends
from rule to rule on the stack: so both the text and the number of rules are bounded.
"""

import re
from functools import lru_cache
from typing import NoReturn

from llguidance.gbnf_to_lark import gbnf_to_lark

from shared.errors import BadRequest

MAX_GRAMMAR_CHARS = 32_768
MAX_RULES = 256

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|.)", re.DOTALL)
_REASON_CHARS = 500


# The gateway asks once for a request, a worker once for each of its choices.
@lru_cache(maxsize=32)
def lark_of(text: str) -> str:
    """Raises ``BadRequest``."""
    if len(text) > MAX_GRAMMAR_CHARS:
        _refuse(f"must have at most {MAX_GRAMMAR_CHARS} characters (has {len(text)})")
    num_rules = text.count("::=")
    if num_rules > MAX_RULES:
        _refuse(f"must have at most {MAX_RULES} rules (has {num_rules})")
    try:
        return gbnf_to_lark(_ESCAPE.sub(_plain, text))
    except BadRequest:
        raise
    except RecursionError:
        _refuse("is nested too deeply")
    except Exception as error:  # it raises no class of its own for most faults
        _refuse(str(error)[:_REASON_CHARS])


def _plain(match: re.Match[str]) -> str:
    """A character written by its number as itself; the converter takes those of ASCII only as ``\\x``."""
    number = match[1] or match[2]
    if number is None:
        return match[0]
    code = int(number, 16)
    if code < 0x80:
        return f"\\x{code:02x}"
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        _refuse(f"{match[0]} is no character")
    return chr(code)


def _refuse(reason: str) -> NoReturn:
    raise BadRequest(f"grammar: {reason}", field="grammar")
