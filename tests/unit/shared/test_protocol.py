import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shared.errors import SetupError
from shared.protocol import (
    MAX_SEED,
    MESSAGES_CEILING,
    PROMPT_CHARS_CEILING,
    STOP_CHARS_CEILING,
    STOPS_CEILING,
    EndEvent,
    Event,
    FinishReason,
    GenerateRequest,
    JobArgs,
    JobError,
    JobStatus,
    StartEvent,
    Timings,
    TokenEvent,
    Usage,
    Weights,
    event_from_wire,
    job_args_to_wire,
    to_wire,
)
from shared.settings import load_settings
from shared.stream import Entry, parse_entry

END = EndEvent(
    status=JobStatus.COMPLETED,
    finish_reason=FinishReason.STOP,
    usage=Usage(prompt_tokens=3, completion_tokens=2),
    timings=Timings(total_s=1.5),
    seed=7,
    worker="worker-0",
    attempts=1,
)


def test_a_bare_prompt_takes_the_defaults_of_llama_server() -> None:
    request = GenerateRequest(prompt="hi")
    values = (request.temperature, request.top_k, request.top_p, request.min_p)
    assert values == (0.8, 40, 0.95, 0.05)
    penalties = (request.repeat_penalty, request.presence_penalty, request.frequency_penalty)
    assert penalties == (1.0, 0.0, 0.0)
    assert (request.max_tokens, request.seed, request.priority) == (256, None, "normal")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": "x", "max_tokens": 0}, "max_tokens"),
        ({"prompt": "x", "max_tokens": 1.5}, "max_tokens"),
        ({"prompt": "x", "seed": MAX_SEED + 1}, "seed"),
        ({"prompt": "x", "seed": -1}, "seed"),
        ({"prompt": "x", "temperature": float("nan")}, "temperature"),
        ({"prompt": "x", "timeout_s": 0}, "timeout_s"),
        ({"prompt": "x", "stop": ["y"] * (STOPS_CEILING + 1)}, "stop"),
        ({"prompt": "x", "unknown": 1}, "unknown"),
        ({"prompt": "\ud800"}, "prompt"),
        ({"messages": []}, "messages"),
    ],
)
def test_what_is_out_of_range_is_refused_at_its_field(body: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        GenerateRequest.model_validate(body)
    assert caught.value.errors()[0]["loc"][0] == field


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"prompt": "x", "messages": [{"role": "user", "content": "y"}]},
        {"messages": [{"role": "user", "content": "y"}], "raw": True},
    ],
)
def test_there_is_exactly_one_input(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="prompt"):
        GenerateRequest.model_validate(body)


@given(st.sampled_from([StartEvent(prompt_tokens=3), END]) | st.builds(TokenEvent, text=st.text()))
def test_events_survive_the_wire(event: Event) -> None:
    arguments = Entry("job", 1, event).to_args()
    fields = {b"k": arguments[2].encode(), b"d": arguments[5].encode()}
    assert parse_entry(fields) == event


def test_a_worker_takes_all_that_a_gateway_may_be_set_to_accept() -> None:
    top = {
        "max_prompt_chars": PROMPT_CHARS_CEILING,
        "max_messages": MESSAGES_CEILING,
        "max_stops": STOPS_CEILING,
        "max_stop_chars": STOP_CHARS_CEILING,
    }
    for name, ceiling in top.items():
        assert getattr(load_settings(**{name: ceiling}), name) == ceiling
        with pytest.raises(SetupError, match=name.upper()):
            load_settings(**{name: ceiling + 1})
    stops = ["y" * STOP_CHARS_CEILING] * STOPS_CEILING
    message = {"role": "user", "content": "x"}
    for body in (
        {"prompt": "x" * PROMPT_CHARS_CEILING, "stop": stops},
        {"messages": [message | {"content": "x" * PROMPT_CHARS_CEILING}]},
        {"messages": [message] * MESSAGES_CEILING},
    ):
        args = JobArgs.model_validate({"request": body, "seed": 1})
        assert JobArgs.model_validate(job_args_to_wire(args)) == args


def test_only_what_was_given_goes_into_a_job() -> None:
    args = JobArgs(request=GenerateRequest(prompt="x", top_k=5), seed=9)
    wire = job_args_to_wire(args)
    assert wire == {"request": {"prompt": "x", "top_k": 5}, "seed": 9}
    assert JobArgs.model_validate(wire) == args


def test_text_is_not_escaped_into_another_text() -> None:
    assert (
        TokenEvent.model_validate_json(
            to_wire(TokenEvent(index=0, tokens=(1,), text='"\\\n\0é', attempt=1))
        ).text
        == '"\\\n\0é'
    )


def test_a_field_of_an_error_is_on_the_wire_only_where_there_is_one() -> None:
    """Who reads it may be older, and refuses what it does not know."""

    def ended(error: JobError | None) -> EndEvent:
        return EndEvent(
            status=JobStatus.FAILED,
            finish_reason=FinishReason.ERROR,
            usage=Usage(),
            timings=Timings(),
            error=error,
            seed=1,
            attempts=1,
        )

    for error in (
        None,
        JobError(code="c", message="m"),
        JobError(code="c", message="m", field="f"),
    ):
        assert event_from_wire("end", to_wire(ended(error))) == ended(error)
    old = json.loads(to_wire(ended(JobError(code="c", message="m"))))
    assert old["error"] == {"code": "c", "message": "m"}
    assert json.loads(to_wire(ended(None)))["error"] is None


def test_weights_are_on_the_wire_only_where_they_are_known() -> None:
    end = EndEvent(
        status=JobStatus.COMPLETED,
        finish_reason=FinishReason.STOP,
        usage=Usage(),
        timings=Timings(),
        seed=1,
        attempts=1,
    )
    assert "weights" not in json.loads(to_wire(end))
    known = end.model_copy(update={"weights": Weights(format="bf16", fingerprint="a" * 16)})
    assert event_from_wire("end", to_wire(known)) == known
