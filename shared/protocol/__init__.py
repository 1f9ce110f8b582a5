"""What crosses a process boundary: the request of a job, its events, and what a worker reports.

Everything is JSON on the wire and is validated when it is read, in the gateway and again in the
worker: what stands in Redis is data, never code.
"""

from shared.protocol.base import (
    MAX_SEED as MAX_SEED,
)
from shared.protocol.base import (
    Frozen as Frozen,
)
from shared.protocol.base import (
    Integer as Integer,
)
from shared.protocol.base import (
    Seed as Seed,
)
from shared.protocol.base import (
    Text as Text,
)
from shared.protocol.events import (
    Alternative as Alternative,
)
from shared.protocol.events import (
    EndEvent as EndEvent,
)
from shared.protocol.events import (
    Event as Event,
)
from shared.protocol.events import (
    FinishReason as FinishReason,
)
from shared.protocol.events import (
    JobError as JobError,
)
from shared.protocol.events import (
    JobStatus as JobStatus,
)
from shared.protocol.events import (
    StartEvent as StartEvent,
)
from shared.protocol.events import (
    Timings as Timings,
)
from shared.protocol.events import (
    TokenEvent as TokenEvent,
)
from shared.protocol.events import (
    TokenLogprob as TokenLogprob,
)
from shared.protocol.events import (
    Usage as Usage,
)
from shared.protocol.events import (
    Weights as Weights,
)
from shared.protocol.events import (
    event_from_wire as event_from_wire,
)
from shared.protocol.events import (
    to_wire as to_wire,
)
from shared.protocol.messages import (
    PROMPT_CHARS_CEILING as PROMPT_CHARS_CEILING,
)
from shared.protocol.messages import (
    FunctionCall as FunctionCall,
)
from shared.protocol.messages import (
    FunctionDefinition as FunctionDefinition,
)
from shared.protocol.messages import (
    FunctionName as FunctionName,
)
from shared.protocol.messages import (
    JsonObjectFormat as JsonObjectFormat,
)
from shared.protocol.messages import (
    JsonSchema as JsonSchema,
)
from shared.protocol.messages import (
    JsonSchemaFormat as JsonSchemaFormat,
)
from shared.protocol.messages import (
    Message as Message,
)
from shared.protocol.messages import (
    NamedTool as NamedTool,
)
from shared.protocol.messages import (
    ResponseFormat as ResponseFormat,
)
from shared.protocol.messages import (
    TextFormat as TextFormat,
)
from shared.protocol.messages import (
    Tool as Tool,
)
from shared.protocol.messages import (
    ToolCall as ToolCall,
)
from shared.protocol.messages import (
    ToolChoice as ToolChoice,
)
from shared.protocol.report import (
    WorkerReport as WorkerReport,
)
from shared.protocol.report import (
    WorkerState as WorkerState,
)
from shared.protocol.request import (
    MAX_BIASES as MAX_BIASES,
)
from shared.protocol.request import (
    MAX_TOKEN_ID as MAX_TOKEN_ID,
)
from shared.protocol.request import (
    MAX_TOOLS as MAX_TOOLS,
)
from shared.protocol.request import (
    MAX_TOP_LOGPROBS as MAX_TOP_LOGPROBS,
)
from shared.protocol.request import (
    MESSAGES_CEILING as MESSAGES_CEILING,
)
from shared.protocol.request import (
    PROMPT_TOKENS_CEILING as PROMPT_TOKENS_CEILING,
)
from shared.protocol.request import (
    STOP_CHARS_CEILING as STOP_CHARS_CEILING,
)
from shared.protocol.request import (
    STOPS_CEILING as STOPS_CEILING,
)
from shared.protocol.request import (
    GenerateRequest as GenerateRequest,
)
from shared.protocol.request import (
    JobArgs as JobArgs,
)
from shared.protocol.request import (
    Priority as Priority,
)
from shared.protocol.request import (
    Sampling as Sampling,
)
from shared.protocol.request import (
    StopText as StopText,
)
from shared.protocol.request import (
    TokenId as TokenId,
)
from shared.protocol.request import (
    job_args_to_wire as job_args_to_wire,
)
