"""A model's chat template: Jinja source from the model file, run in a sandbox.

It knows messages and text. What a token is, or where the source stood, is the backend's.
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from shared.errors import BadRequest
from shared.protocol import Message

logger = logging.getLogger(__name__)


class ChatTemplate:
    def __init__(self, template: Template) -> None:
        self._template = template

    def render(self, messages: Sequence[Message], at_s: float) -> str:
        """The prompt for an assistant's turn. ``at_s`` (Unix time) is what the template is told of the
        date, in UTC: the job's, so that a later attempt and another host give the same. Raises
        ``BadRequest`` if the template refuses."""
        at = datetime.fromtimestamp(at_s, UTC)
        turns = [message.model_dump() for message in messages]
        try:
            return self._template.render(messages=turns, strftime_now=at.strftime)
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
    try:
        return ChatTemplate(environment.from_string(source.decode()))
    except (TemplateError, UnicodeDecodeError) as error:
        logger.warning("the chat template of %s is not usable: %s", model_path, error)
        return None


def _raise_template_error(message: str) -> NoReturn:
    raise TemplateError(message)
