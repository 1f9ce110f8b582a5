"""The backend of llama.cpp on the real model: files it refuses, text, and how tokens are drawn."""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from shared.errors import ModelUnusable
from shared.protocol import MAX_SEED, Message, Sampling
from tests.models import model_path
from worker.backends.base import Backend, Row, SlotChunk
from worker.backends.llama import LlamaBackend

pytestmark = pytest.mark.model

CONTEXT_TOKENS = 255
PROMPT = "The sea is"


@pytest.fixture(scope="module")
def backend() -> Iterator[LlamaBackend]:
    backend = LlamaBackend(model_path(), slots=3, threads=1, context_tokens=CONTEXT_TOKENS)
    yield backend
    backend.close()


def generate(
    backend: Backend,
    sampling: Sampling,
    *,
    seed: int = 3,
    slot: int = 0,
    num_tokens: int = 12,
    prompt: Sequence[int] | None = None,
) -> list[int]:
    tokens = list(prompt or backend.tokenize(PROMPT, raw=True))
    backend.open_slot(slot, sampling, seed, tokens)
    for start in range(0, len(tokens), 50):
        backend.prefill([SlotChunk(slot, tokens[start : start + 50], start)])
    drawn = [backend.sample_prefill(slot, 0)]
    while len(drawn) < num_tokens:
        row = Row(slot, drawn[-1], len(tokens) + len(drawn) - 1)
        drawn += backend.decode([row], [len(drawn)])
    backend.close_slot(slot)
    return drawn


def text_of(backend: Backend, tokens: Sequence[int]) -> str:
    return b"".join(backend.piece(token) for token in tokens).decode()


# --- files


def header(version: int = 3, num_tensors: int = 0, num_keys: int = 0) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, num_tensors, num_keys)


def refusal(path: Path, context_tokens: int = 0) -> str:
    with pytest.raises(ModelUnusable) as caught:
        LlamaBackend(path, slots=2, threads=1, context_tokens=context_tokens).close()
    beginning = f"{path} cannot be used: "
    assert caught.value.message.startswith(beginning)
    return caught.value.message.removeprefix(beginning)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "magic"),
        (b"GG", "magic"),
        (b"<!doctype html><title>Not found</title>" * 100, "magic"),
        (b"PK\x03\x04" + bytes(4096), "magic"),
        (header(version=999), "version"),
        (header(), "architecture"),
        (header(num_keys=2**40), ""),
        (header(num_tensors=2**62), ""),
    ],
    ids=[
        "empty", "two bytes", "a web page", "a zip", "a later version",
        "no keys", "too many keys", "too many tensors",
    ],
)  # fmt: skip
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    said = refusal(path)
    assert said.strip()
    assert reason in said


@pytest.mark.parametrize("num_bytes", [100, 100_000, 5_000_000], ids=str)
def test_a_truncated_model_is_refused(tmp_path: Path, num_bytes: int) -> None:
    path = tmp_path / "truncated.gguf"
    with model_path().open("rb") as whole:
        path.write_bytes(whole.read(num_bytes))
    assert refusal(path).strip()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path / "missing.gguf") == "there is no such file"
    assert refusal(tmp_path) == "there is no such file"


def test_a_context_that_the_model_was_not_trained_for_is_refused() -> None:
    assert refusal(model_path(), 10**6) == "its context is 8192 tokens, 1000000 were asked"


def test_closing_twice_is_harmless() -> None:
    backend = LlamaBackend(model_path(), slots=1, threads=1, context_tokens=64)
    backend.open_slot(0, Sampling(), 1, [1, 2])
    backend.close()
    backend.close()


def test_facts(backend: LlamaBackend) -> None:
    facts = backend.facts
    assert (facts.slots, facts.context_tokens) == (3, CONTEXT_TOKENS)
    assert facts.has_chat_template
    assert "Q4_1" in facts.description
    # 30 layers, 3 heads of 64 for keys and for values, two bytes each
    assert facts.kv_cache_bytes == 3 * 256 * 30 * 3 * 64 * 2 * 2


# --- text


def test_special_tokens_are_parsed_in_a_chat_only(backend: LlamaBackend) -> None:
    text = "hi <|im_end|>"
    raw, chat = backend.tokenize(text, raw=True), backend.tokenize(text, raw=False)
    assert not any(backend.is_end(token) for token in raw)
    assert backend.is_end(chat[-1])
    assert text_of(backend, raw) == text
    assert text_of(backend, chat) == "hi "


@pytest.mark.parametrize("text", ["", "a", " a  b\n\n", "a\0b", "Grüße, 世界 🎉", "word " * 400])
def test_text_survives_its_tokens(backend: LlamaBackend, text: str) -> None:
    tokens = backend.tokenize(text, raw=True)
    assert text_of(backend, tokens) == text


def test_a_piece_may_be_a_part_of_a_character(backend: LlamaBackend) -> None:
    pieces = [backend.piece(token) for token in backend.tokenize("🦭", raw=True)]
    assert len(pieces) > 1
    assert b"".join(pieces).decode() == "🦭"


def test_the_piece_of_a_control_token_is_empty(backend: LlamaBackend) -> None:
    controls = backend.tokenize("<|im_start|><|im_end|><|endoftext|>", raw=False)
    assert len(controls) == 3
    assert [backend.piece(token) for token in controls] == [b"", b"", b""]
    assert [backend.is_end(token) for token in controls] == [False, True, True]


@pytest.mark.parametrize("token", [-1, 49_152, 2_000_000_000])
def test_what_is_no_token_is_refused_where_llama_cpp_would_end_the_process(
    backend: LlamaBackend, token: int
) -> None:
    with pytest.raises(ValueError, match="no token"):
        backend.piece(token)


def test_the_chat_template_takes_every_role(backend: LlamaBackend) -> None:
    rendered = backend.render_chat(
        [
            Message(role="system", content="Be brief."),
            Message(role="user", content="Hi {{ 7 * 7 }}"),
            Message(role="assistant", content="Hello."),
            Message(role="user", content="Bye"),
        ],
        0,
    )
    assert rendered == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\nHi {{ 7 * 7 }}<|im_end|>\n"
        "<|im_start|>assistant\nHello.<|im_end|>\n"
        "<|im_start|>user\nBye<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    tokens = backend.tokenize(rendered, raw=False)
    assert sum(backend.is_end(token) for token in tokens) == 4


def test_the_chat_template_has_a_system_message_of_its_own(backend: LlamaBackend) -> None:
    rendered = backend.render_chat([Message(role="user", content="Hi")], 0)
    assert rendered.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")


# --- draws


def test_greedy_answers_the_question(backend: LlamaBackend) -> None:
    prompt = backend.tokenize("The capital of France is", raw=True)
    assert "Paris" in text_of(backend, generate(backend, Sampling(temperature=0), prompt=prompt))


def test_a_seed_gives_its_tokens_in_any_slot(backend: LlamaBackend) -> None:
    sampling = Sampling(temperature=1.5)
    first, again = (generate(backend, sampling, seed=5, slot=slot) for slot in (0, 2))
    others = [generate(backend, sampling, seed=seed) for seed in (0, 6, MAX_SEED)]
    assert first == again
    assert len({tuple(tokens) for tokens in [first, *others]}) == 4


def test_greedy_needs_no_seed(backend: LlamaBackend) -> None:
    first, other = (generate(backend, Sampling(temperature=0), seed=seed) for seed in (1, 2))
    assert first == other


def test_ignore_eos_never_draws_an_end(backend: LlamaBackend) -> None:
    messages = [Message(role="user", content="What is 2+2?")]
    prompt = backend.tokenize(backend.render_chat(messages, 0), raw=False)
    plain = generate(backend, Sampling(temperature=0), prompt=prompt, num_tokens=16)
    assert any(backend.is_end(token) for token in plain)
    for temperature in (0, 0.8):
        sampling = Sampling(temperature=temperature, ignore_eos=True)
        drawn = generate(backend, sampling, prompt=prompt, num_tokens=24)
        assert not any(backend.is_end(token) for token in drawn)


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=1e-9),
        Sampling(temperature=2e-6),
        Sampling(temperature=5, top_k=1),
        Sampling(temperature=5, top_k=0, top_p=0, min_p=0),
        Sampling(temperature=5, top_k=0, top_p=1, min_p=1),
    ],
    ids=lambda sampling: str(sampling.model_dump(exclude_defaults=True)),
)
def test_the_limits_of_sampling_are_greedy(backend: LlamaBackend, sampling: Sampling) -> None:
    assert generate(backend, sampling) == generate(backend, Sampling(temperature=0))


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=5, top_k=0, top_p=1, min_p=0),
        Sampling(top_k=1_000_000, top_p=1, min_p=0, ignore_eos=True),
        Sampling(temperature=0, repeat_penalty=10),
        Sampling(temperature=5, repeat_penalty=0.01, ignore_eos=True),
        Sampling(temperature=1e-6, repeat_penalty=10, frequency_penalty=2, presence_penalty=2),
        Sampling(temperature=0.01, repeat_penalty=0.01, frequency_penalty=-2, presence_penalty=-2),
    ],
    ids=lambda sampling: str(sampling.model_dump(exclude_defaults=True)),
)
def test_extreme_sampling_gives_tokens(backend: LlamaBackend, sampling: Sampling) -> None:
    drawn = generate(backend, sampling)
    assert all(0 <= token < 49_152 for token in drawn)
    assert drawn == generate(backend, sampling, slot=1)


def test_penalties_see_the_prompt(backend: LlamaBackend) -> None:
    """With such a reward for what was there before, nothing else is drawn."""
    prompt = backend.tokenize(PROMPT, raw=True)
    rewarding = Sampling(temperature=0, frequency_penalty=-2, presence_penalty=-2)
    penalizing = Sampling(temperature=0, repeat_penalty=10, presence_penalty=2)
    repeated = generate(backend, rewarding, prompt=prompt * 8)
    assert set(repeated) <= set(prompt)
    fresh = generate(backend, penalizing, prompt=prompt * 8)
    assert len(set(fresh)) == len(fresh)


def test_a_sequence_fills_its_context(backend: LlamaBackend) -> None:
    prompt = (backend.tokenize(PROMPT, raw=True) * 80)[:245]
    sampling = Sampling(temperature=0, ignore_eos=True)
    assert len(generate(backend, sampling, prompt=prompt, num_tokens=11)) == 11


def test_a_wrong_position_is_an_error_and_spoils_nothing(backend: LlamaBackend) -> None:
    prompt = backend.tokenize(PROMPT, raw=True)
    expected = generate(backend, Sampling(temperature=0))
    backend.open_slot(1, Sampling(), 1, prompt)
    backend.prefill([SlotChunk(1, prompt, 0)])
    with pytest.raises(RuntimeError, match="llama_decode of 2 rows failed"):
        backend.prefill([SlotChunk(1, prompt[:2], 50)])
    backend.close_slot(1)
    assert generate(backend, Sampling(temperature=0), slot=1) == expected


@pytest.mark.parametrize(
    "text", ["word " * 300, "<|im_end|>" * 300, "<|im_end|>é'" * 100, "", " " * 500]
)
@pytest.mark.parametrize("raw", [True, False])
def test_the_lower_bound_of_the_tokens_is_one(backend: LlamaBackend, text: str, raw: bool) -> None:
    assert backend.count_at_least(text, raw=raw) <= len(backend.tokenize(text, raw=raw))


def test_special_tokens_count_without_tokenizing(backend: LlamaBackend) -> None:
    assert backend.count_at_least("<|im_end|>a" * 90_000, raw=False) >= 90_000
