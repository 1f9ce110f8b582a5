"""The bodies of ``POST /v1/chat/completions`` and ``POST /v1/completions``, as OpenAI's clients send them.

``null`` is as good as nothing. Bounds that a job has too are those of ``GenerateRequest``, which says
them; what is in no field here is known to ``unsupported``, or to nobody.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from shared.protocol import (
    Frozen,
    Integer,
    Priority,
    ResponseFormat,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
)

MAX_CHOICES = 16
#: Prompts times choices of one request: each is a job.
MAX_JOBS = 128

ServiceTier = Literal["auto", "default", "flex", "priority"]


class TextPart(Frozen):
    """For OpenAPI; ``_joined`` reads it."""

    type: Literal["text"]
    text: str


def _joined(value: object) -> object:
    """A list of text parts as one text."""
    if not isinstance(value, list):
        return value
    return "".join(_text_of(index, part) for index, part in enumerate(value))


def _text_of(index: int, part: object) -> str:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        raise ValueError(f"element {index} must be an object with a `type`")
    if part["type"] != "text":
        raise ValueError(
            f"element {index} is of type {part['type'][:40]!r}; only `text` is supported"
        )
    if set(part) != {"type", "text"} or not isinstance(part["text"], str):
        raise ValueError(f"element {index} must have `type` and `text`, a text, and nothing else")
    return part["text"]


def _prompts(value: object) -> object:
    """OpenAI's four kinds of prompt as one: a list of texts and lists of tokens."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise ValueError("must be a text, a list of texts, or one or more lists of token ids")
    if not value:
        raise ValueError("must not be empty")
    if _are_tokens(value):
        return (_tokens(value),)
    if all(isinstance(part, str) for part in value):
        return tuple(value)
    if all(isinstance(part, list) and _are_tokens(part) for part in value):
        return tuple(_tokens(part) for part in value)
    raise ValueError("must be a text, a list of texts, or one or more lists of token ids")


def _are_tokens(value: list[Any]) -> bool:
    return all(type(token) is int or _is_whole(token) for token in value)


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and value.is_integer()


def _tokens(value: list[Any]) -> tuple[int, ...]:
    return tuple(int(token) for token in value)


Content = Annotated[Text, BeforeValidator(_joined, json_schema_input_type=str | list[TextPart])]
_PromptInput = str | list[str] | list[int] | list[list[int]]
Prompts = Annotated[
    tuple[Text | tuple[int, ...], ...],
    BeforeValidator(_prompts, json_schema_input_type=_PromptInput),
]


class ChatMessage(Frozen):
    """What OpenAI's clients add to an answer that they send back is taken where it is empty."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None = None
    name: Text | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    tool_call_id: Text | None = None
    refusal: None = None
    audio: None = None
    function_call: None = None
    annotations: Annotated[tuple[()], Field(max_length=0)] | None = None


class StreamOptions(Frozen):
    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = None


class Body(Frozen):
    """What both routes take. ``top_k`` and all that follows are extensions of OpenAI's API."""

    model_config = ConfigDict(extra="allow")  # ``unsupported`` looks at them

    model: Text | None = None
    max_tokens: Integer | None = None
    n: Integer | None = Field(None, ge=1, le=MAX_CHOICES)
    stop: Text | Annotated[tuple[Text, ...], Field(fail_fast=True)] | None = None
    seed: Integer | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[int, float] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: Text | None = None
    service_tier: ServiceTier | None = None
    response_format: ResponseFormat | None = None
    top_k: Integer | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    repetition_penalty: float | None = Field(None, description="vLLM's name of `repeat_penalty`")
    ignore_eos: bool | None = None
    grammar: Text | None = None
    priority: Priority | None = None
    timeout_s: float | None = None
    background: bool | None = None


class ChatBody(Body):
    messages: tuple[ChatMessage, ...] = Field(fail_fast=True)
    max_completion_tokens: Integer | None = None
    logprobs: bool | None = None
    top_logprobs: Integer | None = None
    tools: tuple[Tool, ...] | None = Field(None, fail_fast=True)
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None


class CompletionBody(Body):
    prompt: Prompts
    logprobs: Integer | None = None
