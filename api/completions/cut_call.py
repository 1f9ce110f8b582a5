"""What is told of a call of a tool that the limit of tokens cut off. Pure.

As OpenAI and llama-server have it: its name, and its arguments as far as they came, which are no whole
JSON then; ``finish_reason`` is ``length``. A call that had no name yet is left out. It is never content.
"""

import json
import re

#: So much of a tag is no text any more.
_SURE_CHARS = 5
_BEGIN = '{"name"'
_HEAD = re.compile(
    r'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)+")\s*,\s*"(\w+)"\s*:\s*(\{.*)\Z', re.DOTALL
)


def is_begun(text: str) -> bool:
    """Whether it may go on to be the JSON of a call."""
    begin = re.sub(r"\s", "", text[:200])[: len(_BEGIN)]
    return _BEGIN.startswith(begin)


def is_tag_begun(text: str, tag: str) -> bool:
    return len(text) >= _SURE_CHARS and tag.startswith(text)


def cut_call(text: str, field: str) -> tuple[str, str] | None:
    """Name, and what there is of the arguments, which stand in ``field``."""
    head = _HEAD.match(text)
    if head is None or head[2] != field:
        return None
    try:
        name = json.loads(head[1])
        name.encode()
    except ValueError:
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(head[3])
    except (ValueError, RecursionError):
        return name, head[3]
    return name, head[3][:end]
