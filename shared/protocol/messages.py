"""What is said in a chat, the tools that a model may call, and the shape that an answer may be held to.
The names are OpenAI's."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from shared.protocol.base import Frozen, Text

#: What a setting of the gateway may be raised to. A worker does not know the gateway's settings: it
#: takes all that some gateway may have accepted.
PROMPT_CHARS_CEILING = 16_777_216

_NAME = r"^[A-Za-z0-9_.-]{1,64}$"


class FunctionCall(Frozen):
    """``arguments`` is JSON as text, as the model wrote it: it may be broken."""

    name: Text = Field(max_length=256)
    arguments: Text = Field(max_length=PROMPT_CHARS_CEILING)


class ToolCall(Frozen):
    id: Text = Field(max_length=256)
    type: Literal["function"] = "function"
    function: FunctionCall


class Message(Frozen):
    role: Literal["system", "user", "assistant", "tool"]
    content: Annotated[Text, Field(max_length=PROMPT_CHARS_CEILING)] | None = None
    name: Annotated[Text, Field(max_length=256)] | None = None
    tool_calls: Annotated[tuple[ToolCall, ...], Field(min_length=1, max_length=128)] | None = None
    tool_call_id: Annotated[Text, Field(max_length=256)] | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.tool_calls is not None and self.role != "assistant":
            raise ValueError("`tool_calls` belong to a message of the assistant")
        if self.tool_call_id is not None and self.role != "tool":
            raise ValueError("`tool_call_id` belongs to a message of a tool")
        if self.content is None and self.tool_calls is None:
            raise ValueError("`content` is required")
        return self

    @property
    def num_chars(self) -> int:
        calls = self.tool_calls or ()
        return len(self.content or "") + sum(
            len(c.function.name) + len(c.function.arguments) for c in calls
        )


class FunctionDefinition(Frozen):
    """``parameters`` is a JSON schema; none means no parameters."""

    name: str = Field(pattern=_NAME)
    description: Text | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Frozen):
    type: Literal["function"]
    function: FunctionDefinition


class FunctionName(Frozen):
    name: str = Field(pattern=_NAME)


class NamedTool(Frozen):
    """A ``tool_choice`` that leaves no choice."""

    type: Literal["function"]
    function: FunctionName


ToolChoice = Literal["none", "auto", "required"] | NamedTool


class TextFormat(Frozen):
    type: Literal["text"]


class JsonObjectFormat(Frozen):
    type: Literal["json_object"]


class JsonSchema(Frozen):
    """``strict`` or not, the schema is kept to."""

    name: str = Field("answer", pattern=_NAME)
    description: Annotated[Text, Field(max_length=4096)] | None = None
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class JsonSchemaFormat(Frozen):
    type: Literal["json_schema"]
    json_schema: JsonSchema


ResponseFormat = Annotated[
    TextFormat | JsonObjectFormat | JsonSchemaFormat, Field(discriminator="type")
]
