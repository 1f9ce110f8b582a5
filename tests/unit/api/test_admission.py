from typing import Any

import pytest

from api.admission import check_request
from api.served_models import ServedModel
from shared.errors import NoWorkerReady, PromptTooLong, ServiceError, UnsupportedParameter
from shared.protocol import GenerateRequest
from shared.settings import Settings

MODEL = ServedModel("m", ready=1, context_tokens=10, num_vocab=50, max_piece_bytes=4)
TOOL = {"type": "function", "function": {"name": "f"}}


def check(model: ServedModel = MODEL, **body: Any) -> None:
    check_request(GenerateRequest.model_validate(body), model, Settings())


def test_a_prompt_that_certainly_does_not_fit_is_refused_with_both_numbers() -> None:
    check(prompt="x" * 36)  # nine tokens, if all were the longest
    with pytest.raises(PromptTooLong, match=r"at least 10 tokens.* 10, ") as caught:
        check(prompt="x" * 37)
    assert caught.value.field == "prompt"


def test_bytes_count_and_spaces_that_a_template_may_drop_do_not() -> None:
    with pytest.raises(PromptTooLong):
        check(prompt="é" * 19)
    check(messages=[{"role": "user", "content": " " * 1000 + "x"}])
    said = [{"role": "user", "content": "x" * 20}] * 2
    with pytest.raises(PromptTooLong, match="messages"):
        check(messages=said)


def test_token_ids_are_counted_and_must_be_of_the_vocabulary() -> None:
    check(prompt_token_ids=[49] * 9)
    with pytest.raises(PromptTooLong, match="has 10 tokens"):
        check(prompt_token_ids=[1] * 10)
    with pytest.raises(ServiceError, match=r"prompt_token_ids.*50 tokens.*got 50"):
        check(prompt_token_ids=[50])
    with pytest.raises(ServiceError, match=r"logit_bias.*50 tokens.*got 77"):
        check(prompt="x", logit_bias={77: 1})


def test_a_model_that_no_worker_has_told_of_refuses_nothing() -> None:
    check(ServedModel("m"), prompt="x" * 1000, logit_bias={77: 1})


def test_tools_need_a_model_that_knows_them() -> None:
    asked: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}], "tools": [TOOL]}
    check(ServedModel("m", ready=1, tool_format="hermes"), **asked)
    check(MODEL, **asked, tool_choice="none")
    with pytest.raises(UnsupportedParameter, match="tools"):
        check(MODEL, **asked)
    with pytest.raises(NoWorkerReady, match="tools"):
        check(ServedModel("m"), **asked)


def test_the_gateways_bounds_hold() -> None:
    with pytest.raises(ServiceError, match="stop: must have at most 16"):
        check(prompt="x", stop=["x"] * 17)
