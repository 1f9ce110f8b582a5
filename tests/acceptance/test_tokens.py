"""The real model's tokens, asked of a worker of `mini-vllm up` beside its jobs."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.model

TEXTS = [
    "The sea is blue.",
    "  two  spaces\n\n\tand a tab ",
    "Gr\u00fc\u00dfe, \u4e16\u754c \U0001f30d",
    "def f(x):\n    return x ** 2\n",
    "<|im_start|>user\nHi<|im_end|>\n",
    "",
]


def post(client: httpx.Client, path: str, **body: object) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("parse_special", [True, False])
def test_a_text_comes_back_from_its_tokens(
    client: httpx.Client, text: str, parse_special: bool
) -> None:
    tokens = post(client, "/tokenize", content=text, parse_special=parse_special)["tokens"]
    assert post(client, "/detokenize", tokens=tokens) == {"content": text}


def test_special_tokens_are_parsed_or_plain_text(client: httpx.Client) -> None:
    parsed = post(client, "/tokenize", content="<|im_end|>", with_pieces=True)["tokens"]
    plain = post(client, "/tokenize", content="<|im_end|>", parse_special=False)["tokens"]
    assert [token["piece"] for token in parsed] == ["<|im_end|>"]
    assert len(plain) > 1


def test_pieces_make_the_text(client: httpx.Client) -> None:
    text = "\u4e16\u754c \U0001f30d!"
    tokens = post(client, "/tokenize", content=text, with_pieces=True)["tokens"]
    pieces = [token["piece"] for token in tokens]
    raw = [p.encode() if isinstance(p, str) else bytes(p) for p in pieces]
    assert b"".join(raw).decode() == text
    assert any(isinstance(piece, list) for piece in pieces), "an emoji is more than one token"


def test_a_raw_prompt_has_as_many_tokens_as_its_job_says(client: httpx.Client) -> None:
    for text in TEXTS[:4]:
        body = {"content": text, "add_special": True, "parse_special": False}
        num_tokens = len(post(client, "/tokenize", **body)["tokens"])
        job = {"prompt": text, "raw": True, "max_tokens": 1}
        job_id = client.post("/generate", json=job).json()["job_id"]
        ended = client.get(f"/jobs/{job_id}?wait_s=30").json()
        assert (ended["status"], ended["usage"]["prompt_tokens"]) == ("completed", num_tokens)


def test_a_chat_has_as_many_tokens_as_its_job_says(client: httpx.Client) -> None:
    messages = [{"role": "user", "content": "What is a queue?"}]
    prompt = post(client, "/apply-template", messages=messages)["prompt"]
    assert prompt.endswith("<|im_start|>assistant\n")
    body = {"content": prompt, "add_special": True}
    num_tokens = len(post(client, "/tokenize", **body)["tokens"])
    job_id = client.post("/generate", json={"messages": messages, "max_tokens": 1}).json()["job_id"]
    ended = client.get(f"/jobs/{job_id}?wait_s=30").json()
    assert ended["usage"]["prompt_tokens"] == num_tokens


def test_a_number_that_is_no_token_is_named(client: httpx.Client) -> None:
    answer = client.post("/detokenize", json={"tokens": [1, 2**31 - 1]})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "tokens.1"
    assert post(client, "/detokenize", tokens=[1])["content"]


def test_questions_are_answered_while_jobs_run(client: httpx.Client) -> None:
    """And change none of their tokens."""
    job = {"prompt": "The sea is", "raw": True, "max_tokens": 64, "seed": 5, "ignore_eos": True}

    def run() -> str:
        job_id = client.post("/generate", json=job).json()["job_id"]
        return str(client.get(f"/jobs/{job_id}?wait_s=50").json()["text"])

    alone = run()
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(run)
        num_answers = 0
        while not beside.done():
            post(client, "/tokenize", content="The sea is blue. " * 200, with_pieces=True)
            num_answers += 1
    assert beside.result() == alone
    assert num_answers > 0
