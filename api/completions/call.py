"""A request of OpenAI's API, read: the jobs that it is, and how they are answered. Pure.

Where a request says nothing, the defaults of ``POST /generate`` hold, but for ``max_tokens``: that is as
much as fits for a chat, and OpenAI's 16 for a completion.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from api.completions.answer import answer
from api.completions.bodies import MAX_JOBS, Body, ChatBody, CompletionBody
from api.completions.form import Endpoint, Form
from api.completions.unsupported import check_supported
from api.validation import InvalidRequest, Problem, find_problems, parse_body
from shared.errors import BadRequest
from shared.protocol import MAX_SEED, GenerateRequest, Priority
from shared.stream import Transcript

#: The engine ends at the context, with ``length``.
_CHAT_MAX_TOKENS = 1_000_000
_COMPLETION_MAX_TOKENS = 16

_PRIORITIES = {"flex": Priority.LOW, "priority": Priority.HIGH}
#: Fields of a job that have the same name and meaning in both bodies.
_SAME = (
    *("model", "user", "stop", "ignore_eos", "grammar", "response_format", "timeout_s"),
    *(
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "presence_penalty",
        "frequency_penalty",
        "logit_bias",
    ),
)


@dataclass(frozen=True, slots=True)
class Call:
    """``jobs``: one for each prompt and choice, those of a prompt together."""

    form: Form
    model: str | None  #: as it was asked for
    jobs: tuple[GenerateRequest, ...]
    num_choices: int
    stream: bool
    include_usage: bool
    background: bool

    def served_by(
        self, model: str, tool_format: str | None, fingerprint: str | None = None
    ) -> "Call":
        """With what is known of the model: ``model`` is its name, ``tool_format`` how it calls tools."""
        if not self.jobs[0].calls_tools:
            tool_format = None
        form = self.form.model_copy(
            update={"model": model, "tool_format": tool_format, "fingerprint": fingerprint}
        )
        return replace(self, form=form)

    def told_as(self, note: str) -> "Call":
        """As it was told when it came first, where ``note`` is what was kept of that."""
        form = Form.of_note(note)
        return self if form is None else replace(self, form=form)

    def answer(self, call_id: str, created_s: int, results: Sequence[Transcript]) -> dict[str, Any]:
        """The whole object. Raises the ``ServiceError`` of the first job that gave no answer."""
        return answer(self.form, call_id, created_s, results, self.num_choices)


def parse_call(endpoint: Endpoint, body: bytes) -> Call:
    """Raises ``BadRequest``: what is not honoured is refused by name."""
    if endpoint == "/v1/chat/completions":
        chat = parse_body(ChatBody, body)
        return _call(endpoint, chat, [_chat_input(chat)], _chat_names(chat))
    completion = parse_body(CompletionBody, body)
    inputs = [_completion_input(completion, prompt) for prompt in completion.prompt]
    return _call(endpoint, completion, inputs, {"prompt_token_ids": "prompt"})


def _call(
    endpoint: Endpoint, body: Body, inputs: list[dict[str, Any]], names: Mapping[str, str]
) -> Call:
    num_choices = body.n or 1
    check_supported(endpoint, body.model_extra or {}, num_choices)
    _check_whole(body, len(inputs) * num_choices)
    same = {name: getattr(body, name) for name in _SAME}
    same |= {"priority": _priority(body), "repeat_penalty": _repeat_penalty(body)}
    if body.repeat_penalty is None:
        names = {**names, "repeat_penalty": "repetition_penalty"}
    fields = {name: value for name, value in same.items() if value is not None}
    jobs = []
    for own in inputs:
        job = _job(fields | own | _seed(body, 0), names)
        jobs.append(job)
        for i in range(1, num_choices):  # the same but for the seed: not validated again
            jobs.append(job.model_copy(update=_seed(body, i)))
    options = body.stream_options
    return Call(
        form=Form(
            endpoint=endpoint,
            model=body.model or "default",
            user=body.user,
            num_jobs=len(jobs) if len(jobs) > 1 else None,
        ),
        model=body.model,
        jobs=tuple(jobs),
        num_choices=num_choices,
        stream=bool(body.stream),
        include_usage=options is not None and bool(options.include_usage),
        background=bool(body.background),
    )


def _job(fields: dict[str, Any], names: Mapping[str, str]) -> GenerateRequest:
    """``names``: field of the job -> field of the body that it came from."""
    try:
        return GenerateRequest.model_validate(fields)
    except ValidationError as error:
        rows = [
            e | {"loc": (names.get(str(e["loc"][0]), e["loc"][0]), *e["loc"][1:])}
            if e["loc"]
            else e
            for e in error.errors(include_url=False)
        ]
        raise InvalidRequest(find_problems(rows)) from None


def _seed(body: Body, index: int) -> dict[str, int]:
    """Choices that differ, and are the same ones again."""
    if body.seed is None:
        return {}
    in_bounds = 0 <= body.seed <= MAX_SEED
    return {"seed": (body.seed + index) % (MAX_SEED + 1) if in_bounds else body.seed}


def _check_whole(body: Body, num_jobs: int) -> None:
    problems = []
    if num_jobs > MAX_JOBS:
        problems.append(
            Problem("n", f"n: prompts times choices must be at most {MAX_JOBS} (are {num_jobs})")
        )
    if body.stream_options is not None and not body.stream:
        problems.append(Problem("stream_options", "stream_options: needs `stream`: true"))
    if body.background and num_jobs > 1:
        problems.append(Problem("background", "background: goes with one prompt and one choice"))
    if problems:
        raise InvalidRequest(problems)


def _priority(body: Body) -> Priority | None:
    asked = _PRIORITIES.get(body.service_tier or "auto")
    if asked and body.priority not in (None, asked):
        raise BadRequest(
            f"`service_tier` {body.service_tier!r} and `priority` {body.priority!s} say different "
            "things: give one of them",
            field="service_tier",
        )
    return body.priority or asked


def _repeat_penalty(body: Body) -> float | None:
    if None not in (body.repeat_penalty, body.repetition_penalty):
        _check_equal(body, "repeat_penalty", "repetition_penalty")
    return body.repetition_penalty if body.repeat_penalty is None else body.repeat_penalty


def _check_equal(body: Body, one: str, other: str) -> None:
    if getattr(body, one) != getattr(body, other):
        raise BadRequest(f"`{one}` and `{other}` mean the same and differ: give one", field=one)


def _chat_names(body: ChatBody) -> dict[str, str]:
    names = {"logprobs": "top_logprobs"}
    return names if body.max_tokens is not None else names | {"max_tokens": "max_completion_tokens"}


def _chat_input(body: ChatBody) -> dict[str, Any]:
    if None not in (body.max_tokens, body.max_completion_tokens):
        _check_equal(body, "max_tokens", "max_completion_tokens")
    max_tokens = body.max_completion_tokens if body.max_tokens is None else body.max_tokens
    messages = [message.model_dump(exclude_none=True) for message in body.messages]
    for message in messages:
        message.pop("annotations", None)
        if message["role"] == "developer":  # OpenAI's newer name of the same
            message["role"] = "system"
    fields: dict[str, Any] = {
        "messages": messages,
        "max_tokens": _CHAT_MAX_TOKENS if max_tokens is None else max_tokens,
    }
    if body.logprobs:
        fields["logprobs"] = body.top_logprobs or 0
    elif body.top_logprobs:
        raise BadRequest("top_logprobs: needs `logprobs`: true", field="top_logprobs")
    if body.tools:
        fields["tools"] = body.tools
    if body.tool_choice is not None:
        fields["tool_choice"] = body.tool_choice
    if body.parallel_tool_calls is not None:
        fields["parallel_tool_calls"] = body.parallel_tool_calls
    return fields


def _completion_input(body: CompletionBody, prompt: str | tuple[int, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "max_tokens": _COMPLETION_MAX_TOKENS if body.max_tokens is None else body.max_tokens
    }
    if body.logprobs is not None:
        fields["logprobs"] = body.logprobs
    if isinstance(prompt, str):
        return fields | {"prompt": prompt, "raw": True}
    return fields | {"prompt_token_ids": prompt}
