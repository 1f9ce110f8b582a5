"""The parameters of the routes as OpenAPI describes them.

They are checked where they are used, with better words than a pattern has: so the patterns stand in
the document and not in the validation. None of them may be null, as an absent one is for FastAPI.
"""

import re
from typing import Annotated, Any

from fastapi import Header, Path, Query
from pydantic import WithJsonSchema

from api import examples
from api.job_reads import CURSOR, JOB_ID
from api.sse import POSITION

IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")


def _text(pattern: str, *shown: str) -> WithJsonSchema:
    schema: dict[str, Any] = {"type": "string", "pattern": f"^{pattern}$"}
    return WithJsonSchema(schema | {"examples": list(shown)})


#: What is not an id gets 404, like one that is not there.
JobId = Annotated[
    str,
    Path(description="`job_id` of what `POST /generate` answered"),
    _text(JOB_ID.pattern, examples.JOB_ID),
]
ChatCallId = Annotated[
    str,
    Path(description="`id` of what `POST /v1/chat/completions` answered"),
    _text(f"chatcmpl-{JOB_ID.pattern}", examples.CHAT_CALL_ID),
]
CompletionCallId = Annotated[
    str,
    Path(description="`id` of what `POST /v1/completions` answered"),
    _text(f"cmpl-{JOB_ID.pattern}", examples.COMPLETION_CALL_ID),
]
Before = Annotated[
    str | None,
    Query(description="`next` of the page before"),
    _text(CURSOR.pattern, examples.CURSOR),
]
WaitS = Annotated[
    float,
    Query(ge=0, description="how long the answer may wait for the job's end"),
]
LastEventId = Annotated[
    str | None,
    Header(description="id of the last event that was seen; an EventSource sends it by itself"),
    _text(f"({POSITION.pattern})?", "2", "38.end"),
]
From = Annotated[
    str | None,
    Query(alias="from", description="the same, where there is no Last-Event-ID"),
    _text(POSITION.pattern, "2", "38.end"),
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        description="printable ASCII without spaces: the same key with the same body names the "
        "same job, so that a submit can be repeated"
    ),
    _text(IDEMPOTENCY_KEY.pattern, "order-4711"),
]
