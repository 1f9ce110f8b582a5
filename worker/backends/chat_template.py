"""A model's chat template: Jinja source from the model file, run in a sandbox.

It knows messages and text. What a token is, or where the source stood, is the backend's.
"""

import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from shared.errors import BadRequest
from shared.protocol import Message, Tool

logger = logging.getLogger(__name__)


class ChatTemplate:
    """``tool_format``: how the model writes calls of tools, as far as its template shows; one of
    ``shared.shapes.TOOL_FORMATS``, or none."""

    def __init__(self, template: Template, tool_format: str | None) -> None:
        self._template = template
        self.tool_format = tool_format

    def render(self, messages: Sequence[Message], at_s: float, tools: Sequence[Tool] = ()) -> str:
        """The prompt for an assistant's turn. ``at_s`` (Unix time) is what the template is told of the
        date, in UTC: the job's, so that a later attempt and another host give the same. Raises
        ``BadRequest`` if the template refuses."""
        at = datetime.fromtimestamp(at_s, UTC)
        words: dict[str, Any] = {"messages": [_turn(message) for message in messages]}
        if tools:
            words["tools"] = [tool.model_dump(exclude_none=True) for tool in tools]
        try:
            return self._template.render(words, strftime_now=at.strftime)
        except (TemplateError, TypeError, ValueError, LookupError, AttributeError) as error:
            raise BadRequest(
                f"the model's chat template refuses these messages: {error}", field="messages"
            ) from error


def compile_template(
    source: bytes | None, model_path: Path, *, bos_token: str, eos_token: str
) -> ChatTemplate | None:
    """None if there is no template, or none that Jinja can compile; the log says why."""
    if not source or b"{" not in source:  # llama.cpp may answer the name of one it knows
        return None
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals.update(
        raise_exception=_raise_template_error,
        bos_token=bos_token,
        eos_token=eos_token,
        add_generation_prompt=True,
    )
    environment.filters["tojson"] = _to_json
    try:
        text = source.decode()
        return ChatTemplate(environment.from_string(text), _tool_format(text))
    except (TemplateError, UnicodeDecodeError) as error:
        logger.warning("the chat template of %s is not usable: %s", model_path, error)
        return None


def _turn(message: Message) -> dict[str, Any]:
    """As templates expect it: without what is not there, and arguments as an object where they are one."""
    turn = message.model_dump(exclude_none=True)
    turn.setdefault("content", "")
    for call in turn.get("tool_calls", ()):
        with suppress(ValueError, RecursionError):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return turn


def _tool_format(source: str) -> str | None:
    if "tools" not in source:
        return None
    if "<tool_call>" in source:
        return "hermes"
    if '"parameters":' in source and "ipython" in source:
        return "llama3"
    return None


def _to_json(value: Any, indent: int | None = None, **_: Any) -> str:
    """As the templates of models mean it; Jinja's own escapes what HTML would."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise_template_error(message: str) -> NoReturn:
    raise TemplateError(message)
