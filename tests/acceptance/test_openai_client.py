"""What OpenAI's own Python client sees of a running service, on the real model."""

import asyncio
import math
from collections.abc import Iterator
from typing import Any, cast

import httpx
import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.service import Up, wait_until

ASK: Any = [{"role": "user", "content": "Explain gravity simply"}]
TELL: Any = [{"role": "user", "content": "Tell me a very long story"}]
COUNT = "1, 2, 3, 4, 5, 6,"


@pytest.fixture(scope="module")
def ai(service: Up) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        yield client


def asynchronous(service: Up) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0, timeout=60)


def ended(client: httpx.Client, job_id: str) -> dict[str, Any]:
    return cast(
        dict[str, Any],
        wait_until(
            lambda: job if (job := client.get(f"/jobs/{job_id}").json()).get("ended_at") else None,
            30,
            f"job {job_id} ends",
        ),
    )


def newest(client: httpx.Client) -> str:
    return str(client.get("/jobs?limit=1").json()["jobs"][0]["job_id"])


def test_the_models_are_listed_and_found_by_every_name(ai: OpenAI) -> None:
    (model,) = ai.models.list().data
    assert model.id == "smollm2"
    assert model.object == "model"
    assert ai.models.retrieve("default").id == ai.models.retrieve("smollm2").id == "smollm2"
    with pytest.raises(openai.NotFoundError) as caught:
        ai.models.retrieve("gpt-4o")
    assert caught.value.code == "model_not_found"


def test_a_chat_is_answered(ai: OpenAI) -> None:
    done = ai.chat.completions.create(model="default", messages=ASK, temperature=0, max_tokens=200)
    assert done.id.startswith("chatcmpl-")
    assert (done.object, done.model) == ("chat.completion", "smollm2")
    (choice,) = done.choices
    assert choice.message.role == "assistant"
    assert "force" in str(choice.message.content)
    assert choice.finish_reason == "stop"
    usage = done.usage
    assert usage is not None
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.prompt_tokens > 10
    assert usage.prompt_tokens_details is not None
    again = ai.chat.completions.create(model="smollm2", messages=ASK, temperature=0, max_tokens=200)
    assert again.choices[0].message.content == choice.message.content
    assert again.usage is not None
    assert again.usage.prompt_tokens == usage.prompt_tokens


def test_a_streamed_chat_is_the_same_text_in_pieces(ai: OpenAI) -> None:
    options: Any = {"model": "default", "messages": ASK, "temperature": 0, "max_tokens": 200}
    whole = ai.chat.completions.create(**options)
    stream = ai.chat.completions.create(
        **options, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk.id for chunk in chunks}) == 1
    *told, last = chunks
    assert told[0].choices[0].delta.role == "assistant"
    assert all(chunk.usage is None for chunk in told)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in told)
    assert text == whole.choices[0].message.content
    assert len(told) > 3
    assert [c.choices[0].finish_reason for c in told] == [None] * (len(told) - 1) + ["stop"]
    assert last.choices == []
    assert last.usage is not None
    assert whole.usage is not None
    assert last.usage.completion_tokens == whole.usage.completion_tokens


def test_a_stream_has_no_usage_unless_it_is_asked_for(ai: OpenAI) -> None:
    stream = ai.chat.completions.create(model="default", messages=ASK, max_tokens=3, stream=True)
    chunks = list(stream)
    assert all(chunk.choices and chunk.usage is None for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "length"


def test_the_clients_own_collector_of_streams_understands_it(ai: OpenAI) -> None:
    with ai.chat.completions.stream(
        model="default", messages=ASK, temperature=0, max_tokens=200
    ) as stream:
        kinds = {event.type for event in stream}
        done = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert "force" in str(done.choices[0].message.content)


def test_a_text_is_continued_as_it_is(ai: OpenAI) -> None:
    done = ai.completions.create(model="default", prompt=COUNT, temperature=0, max_tokens=8)
    assert done.id.startswith("cmpl-")
    assert done.object == "text_completion"
    assert done.choices[0].text.startswith(" 7")
    assert done.choices[0].finish_reason == "length"
    stream = ai.completions.create(
        model="default", prompt=COUNT, temperature=0, max_tokens=8, stream=True
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].text for chunk in chunks) == done.choices[0].text
    assert chunks[-1].choices[0].finish_reason == "length"


def test_a_completion_has_16_tokens_unless_it_says_more(ai: OpenAI) -> None:
    done = ai.completions.create(
        model="default", prompt=COUNT, temperature=0, extra_body={"ignore_eos": True}
    )
    assert done.usage is not None
    assert done.usage.completion_tokens == 16


def test_several_prompts_and_choices_come_in_their_order(ai: OpenAI) -> None:
    prompts = [COUNT, "The capital of France is"]
    done = ai.completions.create(
        model="default", prompt=prompts, n=2, best_of=2, temperature=0, max_tokens=6
    )
    assert [choice.index for choice in done.choices] == [0, 1, 2, 3]
    texts = [choice.text for choice in done.choices]
    assert texts[0] == texts[1]
    assert texts[2] == texts[3]
    assert "7" in texts[0]
    assert "Paris" in texts[2]
    assert done.usage is not None
    assert done.usage.completion_tokens == 24


def test_choices_differ_and_a_seed_gives_all_of_them_again(ai: OpenAI) -> None:
    options: Any = {
        "model": "default",
        "messages": TELL,
        "n": 2,
        "seed": 11,
        "temperature": 1.2,
        "max_tokens": 16,
    }
    first, again = (ai.chat.completions.create(**options) for _ in range(2))
    texts = [choice.message.content for choice in first.choices]
    assert len(set(texts)) == 2
    assert [choice.message.content for choice in again.choices] == texts
    single = ai.chat.completions.create(**(options | {"n": 1, "seed": 12}))
    assert single.choices[0].message.content == texts[1]


def test_streamed_choices_are_told_apart(ai: OpenAI) -> None:
    options: Any = {
        "model": "default",
        "messages": TELL,
        "n": 2,
        "seed": 11,
        "max_tokens": 12,
    }
    whole = ai.chat.completions.create(**options)
    texts = ["", ""]
    reasons = []
    for chunk in ai.chat.completions.create(**options, stream=True):
        (choice,) = chunk.choices
        texts[choice.index] += choice.delta.content or ""
        reasons += [choice.finish_reason] if choice.finish_reason else []
    assert texts == [choice.message.content for choice in whole.choices]
    assert len(reasons) == 2


def test_a_stop_text_ends_the_answer_and_is_not_in_it(ai: OpenAI) -> None:
    done = ai.completions.create(
        model="default", prompt=COUNT, temperature=0, max_tokens=32, stop=[" 9"]
    )
    assert done.choices[0].finish_reason == "stop"
    assert "8" in done.choices[0].text
    assert "9" not in done.choices[0].text


def test_log_probabilities_of_a_chat_have_their_alternatives(ai: OpenAI) -> None:
    options: Any = {
        "model": "default",
        "messages": ASK,
        "temperature": 0,
        "max_tokens": 8,
        "logprobs": True,
        "top_logprobs": 3,
    }
    done = ai.chat.completions.create(**options)
    assert done.choices[0].logprobs is not None
    content = done.choices[0].logprobs.content
    assert content is not None
    assert done.usage is not None
    assert len(content) == done.usage.completion_tokens
    for token in content:
        assert len(token.top_logprobs) == 3
        assert token.logprob <= 0
        assert math.isclose(token.logprob, token.top_logprobs[0].logprob)  # greedy
    said = b"".join(bytes(token.bytes or []) for token in content).decode()
    assert said.startswith(str(done.choices[0].message.content))
    streamed = [
        token
        for chunk in ai.chat.completions.create(**options, stream=True)
        if chunk.choices[0].logprobs
        for token in chunk.choices[0].logprobs.content or []
    ]
    assert [token.token for token in streamed] == [token.token for token in content]


def test_log_probabilities_of_a_completion_have_their_places(ai: OpenAI) -> None:
    done = ai.completions.create(
        model="default", prompt=COUNT, temperature=0, max_tokens=6, logprobs=2
    )
    told = done.choices[0].logprobs
    assert told is not None
    assert told.tokens is not None
    assert told.text_offset is not None
    assert told.top_logprobs is not None
    assert "".join(told.tokens) == done.choices[0].text
    assert told.text_offset[0] == 0
    assert told.text_offset[1] == len(told.tokens[0])
    assert all(len(top) == 2 for top in told.top_logprobs)


def test_a_bias_keeps_a_token_out(ai: OpenAI, client: httpx.Client) -> None:
    options: Any = {"model": "default", "prompt": COUNT, "temperature": 0, "max_tokens": 1}
    plain = ai.completions.create(**options, logprobs=1)
    job = client.get(f"/jobs/{plain.id.removeprefix('cmpl-')}").json()
    assert job["text"] == plain.choices[0].text
    banned = {str(token): -100 for token in range(40)}
    biased = ai.completions.create(**options, logit_bias=banned)
    assert biased.choices[0].text
    with pytest.raises(openai.BadRequestError, match="logit_bias"):
        ai.completions.create(**options, logit_bias={"1": 101})


def test_a_prompt_that_is_too_long_has_its_code_also_for_a_stream(ai: OpenAI) -> None:
    words: Any = [{"role": "user", "content": "word " * 1500}]
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as caught:
            ai.chat.completions.create(model="default", messages=words, stream=stream)
        assert caught.value.code == "context_length_exceeded"
        assert caught.value.param == "messages"
        assert "1024" in caught.value.message
    with pytest.raises(openai.BadRequestError) as caught:
        ai.completions.create(model="default", prompt="word " * 30_000)
    assert caught.value.code == "context_length_exceeded"
    assert caught.value.param == "prompt"


def test_errors_are_those_that_the_client_has_classes_for(ai: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        ai.chat.completions.create(model="gpt-4o", messages=ASK)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as unsupported:
        ai.chat.completions.create(model="default", messages=ASK, store=True)
    assert (unsupported.value.code, unsupported.value.param) == ("unsupported_parameter", "store")
    with pytest.raises(openai.BadRequestError) as unknown:
        ai.chat.completions.create(model="default", messages=ASK, extra_body={"surprise": 1})
    assert unknown.value.param == "surprise"
    with pytest.raises(openai.BadRequestError) as hot:
        ai.chat.completions.create(model="default", messages=ASK, temperature=9)
    assert hot.value.param == "temperature"
    assert hot.value.type == "invalid_request_error"
    with pytest.raises(openai.NotFoundError):
        ai.embeddings.create(model="default", input="x")


def test_a_deadline_is_an_error_that_is_not_tried_again(ai: OpenAI, client: httpx.Client) -> None:
    retrying = ai.with_options(max_retries=2)
    before = client.get("/metrics").json()["total_requests"]
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        retrying.completions.create(
            model="default",
            prompt=COUNT,
            max_tokens=1000,
            extra_body={"timeout_s": 0.8, "ignore_eos": True},
        )
    assert caught.value.code == "timeout"
    assert client.get("/metrics").json()["total_requests"] <= before + 1
    assert ended(client, newest(client))["finish_reason"] == "timeout"


def test_a_stream_that_is_left_ends_its_job(ai: OpenAI, client: httpx.Client) -> None:
    stream = ai.chat.completions.create(
        model="default",
        messages=TELL,
        max_tokens=900,
        stream=True,
        extra_body={"ignore_eos": True},
    )
    job_id = next(iter(stream)).id.removeprefix("chatcmpl-")
    stream.close()
    job = ended(client, job_id)
    assert job["status"] == "cancelled"
    assert job["usage"]["completion_tokens"] < 900


def test_an_answer_that_nobody_waits_for_is_not_written(ai: OpenAI, client: httpx.Client) -> None:
    before = newest(client)
    hasty = ai.with_options(timeout=0.7)
    with pytest.raises(openai.APITimeoutError):
        hasty.chat.completions.create(
            model="default",
            messages=TELL,
            max_tokens=900,
            n=2,
            extra_body={"ignore_eos": True},
        )
    jobs = client.get("/jobs?limit=2").json()["jobs"]
    assert before not in [job["job_id"] for job in jobs]
    assert [ended(client, job["job_id"])["status"] for job in jobs] == ["cancelled"] * 2


def test_a_background_answer_is_fetched_later(ai: OpenAI, client: httpx.Client) -> None:
    raw = ai.chat.completions.with_raw_response.create(
        model="default",
        messages=ASK,
        temperature=0,
        max_tokens=200,
        user="somebody",
        extra_body={"background": True},
    )
    assert raw.status_code == 202
    told = raw.http_response.json()
    assert (told["status"], told["choices"]) == ("queued", [])
    job_id = told["id"].removeprefix("chatcmpl-")
    assert raw.headers["x-job-id"] == job_id
    assert ended(client, job_id)["user"] == "somebody"
    done = ai.chat.completions.retrieve(told["id"])
    assert "force" in str(done.choices[0].message.content)
    assert done.id == told["id"]
    assert cast(Any, done).status == "completed"
    with pytest.raises(openai.NotFoundError):
        ai.chat.completions.retrieve("chatcmpl-" + "0" * 32)


def test_a_background_stream_goes_on_without_its_client(ai: OpenAI, client: httpx.Client) -> None:
    stream = ai.completions.create(
        model="default",
        prompt=COUNT,
        max_tokens=60,
        stream=True,
        extra_body={"background": True, "ignore_eos": True},
    )
    call_id = next(iter(stream)).id
    stream.close()
    job = ended(client, call_id.removeprefix("cmpl-"))
    assert (job["status"], job["usage"]["completion_tokens"]) == ("completed", 60)
    fetched = client.get(f"/v1/completions/{call_id}").json()
    assert fetched["choices"][0]["text"] == job["text"]
    assert client.get(f"/v1/chat/completions/{call_id}").status_code == 404


def test_tools_are_refused_for_a_model_that_knows_none(ai: OpenAI) -> None:
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    with pytest.raises(openai.BadRequestError, match="tools"):
        ai.chat.completions.create(model="default", messages=ASK, tools=tools)
    done = ai.chat.completions.create(
        model="default", messages=ASK, tools=tools, tool_choice="none", max_tokens=4
    )
    assert done.choices[0].message.content


def test_the_asynchronous_client_is_served_too(service: Up) -> None:
    async def talk() -> tuple[list[str], str]:
        async with asynchronous(service) as ai:
            options: Any = {"model": "default", "messages": ASK, "temperature": 0, "max_tokens": 40}
            answers = await asyncio.gather(
                *(ai.chat.completions.create(**options) for _ in range(4))
            )
            stream = await ai.chat.completions.create(**options, stream=True)
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
            with pytest.raises(openai.NotFoundError):
                await ai.completions.create(model="nobody", prompt="x")
            texts = [str(answer.choices[0].message.content) for answer in answers]
            return texts, "".join(pieces)

    texts, streamed = asyncio.run(talk())
    assert set(texts) == {streamed}
    assert "force" in streamed
