"""The body of ``POST /cache/warm``: what is computed ahead, and the job that does it. Pure."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from api.request_schema import inlined, whole_message
from shared.protocol import MESSAGES_CEILING, PROMPT_CHARS_CEILING, GenerateRequest, Message
from shared.protocol.base import Frozen, Text
from shared.settings import Settings

_EXAMPLE = {"text": "You are the assistant of a library. Answer in one sentence."}
_NULL: dict[str, Any] = {"type": "null"}


class WarmBody(Frozen):
    """The body of ``POST /cache/warm``."""

    text: Annotated[Text, Field(min_length=1, max_length=PROMPT_CHARS_CEILING)] | None = Field(
        None, description="a system prompt that chats begin with"
    )
    messages: tuple[Message, ...] | None = Field(
        None,
        min_length=1,
        max_length=MESSAGES_CEILING,
        fail_fast=True,
        description="the beginning of a chat",
    )
    raw: bool = Field(False, description="`text` is the beginning of prompts without template")
    public: bool = Field(
        False, description="for the jobs of all keys, not of this one alone; needs an admin key"
    )
    model: Annotated[Text, Field(min_length=1, max_length=1024)] | None = Field(
        None, description="one of `GET /v1/models`; none: the gateway's own"
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.text is None) == (self.messages is None):
            raise ValueError("give either `text` or `messages`")
        if self.raw and self.text is None:
            raise ValueError("`raw` goes with `text`, not with `messages`")
        return self

    def to_request(self) -> GenerateRequest:
        """Of the job that computes it: its answer is of no use, and as short as can be."""
        rest: dict[str, Any] = {"model": self.model, "max_tokens": 1, "temperature": 0}
        if self.raw:
            return GenerateRequest(prompt=self.text, raw=True, **rest)
        if self.text is not None:
            return GenerateRequest(messages=(Message(role="system", content=self.text),), **rest)
        return GenerateRequest(messages=self.messages, **rest)


def warm_body(settings: Settings) -> dict[str, Any]:
    """For OpenAPI, with the bounds of this gateway. The route reads it and FastAPI does not."""
    schema = WarmBody.model_json_schema()
    whole: dict[str, Any] = inlined(schema, schema["$defs"])
    fields = whole["properties"]
    text, messages = fields["text"]["anyOf"][0], fields["messages"]["anyOf"][0]
    text["maxLength"] = settings.max_prompt_chars
    messages["maxItems"] = settings.max_messages
    messages["items"] = whole_message(messages["items"])
    whole["oneOf"] = [
        {"required": ["text"], "properties": {"text": text, "messages": _NULL}},
        {
            "required": ["messages"],
            "properties": {"messages": messages, "text": _NULL, "raw": {"const": False}},
        },
    ]
    examples = {"text": {"value": _EXAMPLE}}
    return {
        "required": True,
        "content": {"application/json": {"schema": whole, "examples": examples}},
    }
