"""The object that answers a request of OpenAI's API at once: made of the events of its jobs. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

from api.completions.ends import error_of, finish_reason, is_cut
from api.completions.form import Form
from api.completions.logprobs import TextOffsets, chat_logprobs, completion_logprobs
from api.completions.tool_calls import CallDelta, ContentDelta, Delta, parser_for
from shared.protocol import EndEvent, Usage
from shared.stream import Transcript


def answer(
    form: Form, call_id: str, created_s: int, results: Sequence[Transcript], num_choices: int = 1
) -> dict[str, Any]:
    """``results`` of all jobs, those of one prompt together, each with its end; there are
    ``num_choices`` to a prompt, which is read once. Raises the ``ServiceError`` of the first that failed."""
    ends = [_end(result) for result in results]
    for end in ends:
        if error := error_of(end):
            raise error
    return {
        **head(form, call_id, created_s),
        "choices": [choice(form, call_id, i, result) for i, result in enumerate(results)],
        "usage": usage_of([end.usage for end in ends], num_choices),
    }


def head(form: Form, call_id: str, created_s: int, *, is_chunk: bool = False) -> dict[str, Any]:
    kind = "text_completion"
    if form.is_chat:
        kind = "chat.completion.chunk" if is_chunk else "chat.completion"
    return {
        "id": call_id,
        "object": kind,
        "created": created_s,
        "model": form.model,
        "system_fingerprint": form.fingerprint,
    }


def choice(form: Form, call_id: str, index: int, result: Transcript) -> dict[str, Any]:
    parser = parser_for(form.tool_format, calls_id(call_id, index))
    deltas = [*parser.feed(result.text), *parser.finish(is_cut=is_cut(_end(result)))]
    reason = finish_reason(_end(result), parser.num_calls)
    if not form.is_chat:
        return {
            "index": index,
            "text": result.text,
            "logprobs": completion_logprobs(result.tokens, TextOffsets()),
            "finish_reason": reason,
        }
    return {
        "index": index,
        "message": _message(deltas),
        "logprobs": chat_logprobs(result.tokens),
        "finish_reason": reason,
    }


def calls_id(call_id: str, index: int) -> str:
    """Of what the ids of a choice's calls are made."""
    return f"{call_id}/{index}"


def _message(deltas: Iterable[Delta]) -> dict[str, Any]:
    text, calls = "", dict[int, dict[str, Any]]()
    for delta in deltas:
        match delta:
            case ContentDelta():
                text += delta.text
            case CallDelta(name=str()):
                function = {"name": delta.name, "arguments": delta.arguments}
                calls[delta.index] = {"id": delta.id, "type": "function", "function": function}
            case CallDelta():
                calls[delta.index]["function"]["arguments"] += delta.arguments
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if calls:
        message |= {"content": text or None, "tool_calls": list(calls.values())}
    return message


def usage_of(usages: Sequence[Usage], num_choices: int = 1) -> dict[str, Any]:
    """A prompt counts once, however many choices it had."""
    prompts = usages[::num_choices]
    prompt_tokens = sum(usage.prompt_tokens for usage in prompts)
    completion_tokens = sum(usage.completion_tokens for usage in usages)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": sum(usage.cached_tokens for usage in prompts)},
    }


def _end(result: Transcript) -> EndEvent:
    assert result.end is not None, "an answer is made of jobs that have ended"
    return result.end
