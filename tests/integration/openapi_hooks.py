"""What schemathesis is not to send: fields whose values hang together, are a language of their own, or end
jobs before their answer, which a JSON schema cannot say. Other tests look at them."""

from typing import Any

import schemathesis

_BEYOND_SCHEMAS = (
    *("grammar", "response_format", "tools", "tool_choice", "webhook_url"),
    *("stream_options", "top_logprobs", "max_completion_tokens", "repetition_penalty"),
    *("service_tier", "background", "timeout_s"),
)


@schemathesis.hook
def filter_body(_context: Any, body: Any) -> bool:
    return not isinstance(body, dict) or all(body.get(name) is None for name in _BEYOND_SCHEMAS)
