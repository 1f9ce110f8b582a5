"""The bodies of OpenAI's routes for OpenAPI, with the bounds that a job has. Pure."""

from typing import Any

from api.completions.bodies import MAX_CHOICES, MAX_JOBS, Body, ChatBody, CompletionBody
from api.completions.form import Endpoint
from api.request_schema import LOGPROBS_BOUNDS, inlined, whole_message
from shared.protocol import GenerateRequest

_KINDS: dict[Endpoint, type[Body]] = {
    "/v1/chat/completions": ChatBody,
    "/v1/completions": CompletionBody,
}
_EXAMPLES: dict[Endpoint, dict[str, Any]] = {
    "/v1/chat/completions": {
        "model": "default",
        "messages": [{"role": "user", "content": "What is a queue?"}],
        "max_tokens": 64,
    },
    "/v1/completions": {"model": "default", "prompt": "The capital of France is"},
}
#: Of the same name and meaning in a job, whose bounds are narrower than the types.
_BOUNDED = (
    *("model", "max_tokens", "seed", "stop", "temperature", "top_p", "top_k", "min_p", "grammar"),
    *("presence_penalty", "frequency_penalty", "repeat_penalty", "logit_bias", "timeout_s", "user"),
)

#: Of a job, what a prompt of a completion becomes.
_INPUTS = ("prompt", "prompt_token_ids")


def call_body(endpoint: Endpoint) -> dict[str, Any]:
    schema = _KINDS[endpoint].model_json_schema()
    whole: dict[str, Any] = inlined(schema, schema.get("$defs", {}))
    job = GenerateRequest.model_json_schema()
    bounds = inlined(job, job["$defs"])["properties"]
    bounds["logprobs"]["anyOf"][0] |= LOGPROBS_BOUNDS
    fields = whole["properties"]
    for name in _BOUNDED:
        fields[name] = _or_null(bounds[name])
    fields["repetition_penalty"] = _or_null(bounds["repeat_penalty"])
    fields["n"] = _or_null({"type": "integer", "minimum": 1, "maximum": MAX_CHOICES})
    if "messages" in fields:
        fields["messages"] |= {"minItems": 1, "items": whole_message(fields["messages"]["items"])}
        fields["top_logprobs"] = bounds["logprobs"]
        fields["max_completion_tokens"] = fields["max_tokens"]
    else:
        fields["logprobs"] = bounds["logprobs"]
        fields["prompt"] = _prompt(bounds)
    # What else OpenAI has is taken with the values that change nothing, and refused by name.
    whole["additionalProperties"] = False
    example = _EXAMPLES[endpoint]
    return {
        "required": True,
        "content": {"application/json": {"schema": whole, "example": example}},
    }


def _prompt(bounds: dict[str, Any]) -> dict[str, Any]:
    """OpenAI's four kinds of it; there are as many jobs as prompts, at least."""
    text, tokens = (bounds[name]["anyOf"][0] for name in _INPUTS)
    several = {"type": "array", "minItems": 1, "maxItems": MAX_JOBS}
    kinds = [text, several | {"items": text}, tokens, several | {"items": tokens}]
    return {"title": "Prompt", "anyOf": kinds}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if {"type": "null"} in schema.get("anyOf", []):
        return schema
    return {"anyOf": [{k: v for k, v in schema.items() if k != "default"}, {"type": "null"}]}
