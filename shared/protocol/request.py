"""What a job asks for: the body of ``POST /generate``, into which the other routes put theirs too."""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from shared.protocol.base import MAX_SEED, Frozen, Integer, Seed, Text, whole
from shared.protocol.messages import (
    PROMPT_CHARS_CEILING,
    JsonObjectFormat,
    JsonSchemaFormat,
    Message,
    ResponseFormat,
    Tool,
    ToolChoice,
)

MESSAGES_CEILING = 65_536
STOPS_CEILING = 256
STOP_CHARS_CEILING = 4096
PROMPT_TOKENS_CEILING = 1_048_576
#: OpenAI's.
MAX_TOP_LOGPROBS = 20
MAX_TOOLS = 128
MAX_BIASES = 1024
MAX_TOKEN_ID = 2**31 - 1

StopText = Annotated[Text, Field(min_length=1, max_length=STOP_CHARS_CEILING)]
TokenId = Annotated[int, Field(ge=0, le=MAX_TOKEN_ID)]
#: Not as a key of an object, where JSON has no numbers.
PromptToken = Annotated[int, Field(ge=0, le=MAX_TOKEN_ID), BeforeValidator(whole)]


class Priority(StrEnum):
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class Sampling(Frozen):
    """How tokens are drawn. Defaults are llama-server's; its meaning of each name holds."""

    temperature: float = Field(0.8, ge=0, le=5, allow_inf_nan=False)
    top_k: Integer = Field(40, ge=0, le=1_000_000, description="0 turns it off")
    top_p: float = Field(0.95, ge=0, le=1, allow_inf_nan=False)
    min_p: float = Field(0.05, ge=0, le=1, allow_inf_nan=False)
    repeat_penalty: float = Field(1.0, ge=0.01, le=10, allow_inf_nan=False)
    presence_penalty: float = Field(0.0, ge=-2, le=2, allow_inf_nan=False)
    frequency_penalty: float = Field(0.0, ge=-2, le=2, allow_inf_nan=False)
    ignore_eos: bool = False
    logit_bias: dict[TokenId, Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)]] = (
        Field(
            {},
            max_length=MAX_BIASES,
            description="by token id; added to its logit",
            json_schema_extra={"propertyNames": {"pattern": "^[0-9]{1,9}$"}},
        )
    )
    logprobs: Integer | None = Field(
        None,
        ge=0,
        le=MAX_TOP_LOGPROBS,
        description="log probabilities of each token, and of so many of the likeliest in its place",
    )


class GenerateRequest(Sampling):
    """The body of ``POST /generate``."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"prompt": "Explain gravity simply", "max_tokens": 64}]},
    )

    model: Annotated[Text, Field(min_length=1, max_length=1024)] | None = Field(
        None, description="one of `GET /v1/models`; none: the gateway's own"
    )
    prompt: Text | None = Field(None, min_length=1, max_length=PROMPT_CHARS_CEILING)
    # fail_fast: a list of nonsense would have an error for each of its elements, half a million.
    messages: tuple[Message, ...] | None = Field(
        None, min_length=1, max_length=MESSAGES_CEILING, fail_fast=True
    )
    prompt_token_ids: tuple[PromptToken, ...] | None = Field(
        None, min_length=1, max_length=PROMPT_TOKENS_CEILING, fail_fast=True
    )
    raw: bool = Field(False, description="continue the prompt as it is, without chat template")
    max_tokens: Integer = Field(256, ge=1, le=1_000_000)
    seed: Seed | None = None
    stop: (
        StopText | Annotated[tuple[StopText, ...], Field(max_length=STOPS_CEILING, fail_fast=True)]
    ) = ()
    response_format: ResponseFormat | None = None
    grammar: Text | None = Field(
        None, min_length=1, max_length=PROMPT_CHARS_CEILING, description="GBNF, as llama.cpp has it"
    )
    tools: tuple[Tool, ...] | None = Field(None, min_length=1, max_length=MAX_TOOLS, fail_fast=True)
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool = True
    timeout_s: float | None = Field(None, gt=0, le=604_800, allow_inf_nan=False)
    priority: Priority = Priority.NORMAL
    user: Annotated[Text, Field(max_length=512)] | None = Field(
        None, description="your name for whom it is; told in the job and in the logs"
    )
    webhook_url: Annotated[Text, Field(min_length=1, max_length=2048)] | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        inputs = (self.prompt, self.messages, self.prompt_token_ids)
        if sum(given is not None for given in inputs) != 1:
            raise ValueError("give either `prompt` or `messages`")
        if self.raw and self.prompt is None:
            raise ValueError("`raw` goes with `prompt`, not with `messages`")
        self._check_tools()
        if self.is_shaped and self.grammar is not None:
            raise ValueError("`grammar` does not go with `response_format`: give one of them")
        if self.ignore_eos and self.has_shape:
            raise ValueError(
                "`ignore_eos` does not go with `response_format`, `grammar` or `tools`: their text "
                "has an end"
            )
        return self

    def _check_tools(self) -> None:
        if self.tools is None:
            if self.tool_choice not in (None, "none", "auto"):
                raise ValueError("`tool_choice` needs `tools`")
            return
        if self.messages is None:
            raise ValueError("`tools` go with `messages`")
        names = [tool.function.name for tool in self.tools]
        if len(set(names)) < len(names):
            raise ValueError("`tools` have two functions of one name")
        chosen = self.tool_choice
        if chosen is not None and not isinstance(chosen, str) and chosen.function.name not in names:
            raise ValueError(f"`tool_choice` names {chosen.function.name!r}, which no tool has")
        if self.calls_tools and (self.is_shaped or self.grammar is not None):
            raise ValueError("`tools` do not go with `response_format` or `grammar`")

    @property
    def is_shaped(self) -> bool:
        """Whether the answer must be JSON."""
        return isinstance(self.response_format, JsonObjectFormat | JsonSchemaFormat)

    @property
    def has_shape(self) -> bool:
        """Whether the answer is held to a grammar of any kind."""
        return self.is_shaped or self.grammar is not None or self.calls_tools

    @property
    def calls_tools(self) -> bool:
        """Whether the model may call one, or must."""
        return self.tools is not None and self.tool_choice != "none"

    @property
    def num_prompt_chars(self) -> int:
        """Of all that the prompt and the shape are made of; a token counts as four characters."""
        return (
            len(self.prompt or "")
            + sum(message.num_chars for message in self.messages or ())
            + 4 * len(self.prompt_token_ids or ())
            + len(self.grammar or "")
            + sum(len(tool.model_dump_json()) for tool in self.tools or ())
            + (len(self.response_format.model_dump_json()) if self.response_format else 0)
        )

    @property
    def stops(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else self.stop


class JobArgs(Frozen):
    """``args[0]`` of the RQ job: all that a worker needs to know of it."""

    request: GenerateRequest
    seed: int = Field(ge=0, le=MAX_SEED)
    request_id: str | None = None
    warm: Literal["own", "public"] | None = Field(
        None,
        description="it is there to store its prompt's state, for jobs of the same key or for all",
    )


def job_args_to_wire(args: JobArgs) -> dict[str, Any]:
    """Only what was set, so that a default can change without changing what waits in a queue."""
    return args.model_dump(mode="json", exclude_unset=True)
