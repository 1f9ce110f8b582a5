from collections.abc import Callable

import pytest

from shared.errors import NoChatTemplate
from shared.protocol import Message, Sampling
from worker.backends.base import Backend, Row, SlotChunk
from worker.backends.scripted import END, ScriptedBackend

SAMPLING = Sampling()
PROMPT = list(b"hello")


def start(backend: Backend, slot: int, tokens: list[int], index: int = 0, seed: int = 1) -> int:
    backend.open_slot(slot, SAMPLING, seed, tokens)
    for position in range(0, len(tokens), 56):
        backend.prefill([SlotChunk(slot, tokens[position : position + 56], position)])
    return backend.sample_prefill(slot, index)


def run(
    backend: Backend, slot: int, tokens: list[int], count: int, index: int = 0, seed: int = 1
) -> list[int]:
    drawn = [start(backend, slot, tokens, index, seed)]
    while len(drawn) < count:
        row = Row(slot, drawn[-1], len(tokens) + len(drawn) - 1)
        drawn += backend.decode([row], [index + len(drawn)])
    return drawn


def test_is_a_backend() -> None:
    backend: Backend = ScriptedBackend(slots=3, context_tokens=100)
    assert (backend.facts.slots, backend.facts.context_tokens) == (3, 100)
    assert backend.check_batch_invariance(1.0)


def test_a_token_is_a_byte() -> None:
    backend = ScriptedBackend()
    tokens = backend.tokenize("é!", raw=True)
    assert b"".join(backend.piece(token) for token in tokens).decode() == "é!"
    assert backend.piece(END) == b""
    assert [token for token in range(END + 1) if backend.is_end(token)] == [END]


def test_chat() -> None:
    messages = [Message(role="system", content="Be brief."), Message(role="user", content="Hi")]
    prompt = ScriptedBackend().render_chat(messages, 0)
    assert prompt == "<system>Be brief.\n<user>Hi\n<assistant>"
    with pytest.raises(NoChatTemplate):
        ScriptedBackend(has_chat_template=False).render_chat(messages, 0)


def test_same_seed_same_tokens() -> None:
    first, again, other = (run(ScriptedBackend(), 0, PROMPT, 8, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_resumed_tokens_are_the_same() -> None:
    whole = run(ScriptedBackend(), 0, PROMPT, 8)
    assert run(ScriptedBackend(), 0, PROMPT + whole[:3], 5, index=3) == whole[3:]


def test_neighbours_and_moves_do_not_matter() -> None:
    expected = run(ScriptedBackend(), 0, PROMPT, 3)
    backend = ScriptedBackend()
    other = start(backend, 0, list(b"abc"))
    drawn = [start(backend, 1, PROMPT)]
    drawn.append(backend.decode([Row(0, other, 3), Row(1, drawn[0], 5)], [1, 1])[1])
    backend.close_slot(0)
    backend.move_slot(1, 0)
    drawn += backend.decode([Row(0, drawn[1], 6)], [2])
    assert drawn == expected
    assert backend.tokens_in(0) == PROMPT + drawn[:2]
    assert backend.open_slots == (0,)


def test_answers_follow_the_script() -> None:
    backend = ScriptedBackend(answers={"hell": "yes"})
    assert run(backend, 0, PROMPT, 4) == [*b"yes", END]


def test_an_answer_may_end_anywhere_in_a_character() -> None:
    backend = ScriptedBackend(answers={"hello": "é".encode()[:1]})
    assert run(backend, 0, PROMPT, 2) == [0xC3, END]


def test_ends_unless_told_to_ignore_it() -> None:
    assert END in run(ScriptedBackend(ends_one_in=2), 0, PROMPT, 20)
    backend = ScriptedBackend(ends_one_in=1)
    backend.open_slot(0, Sampling(ignore_eos=True), 1, PROMPT)
    backend.prefill([SlotChunk(0, PROMPT, 0)])
    assert backend.sample_prefill(0, 0) != END


def test_calls_are_recorded() -> None:
    backend = ScriptedBackend()
    run(backend, 0, PROMPT, 2)
    assert [call.name for call in backend.calls] == [
        "open_slot",
        "prefill",
        "sample_prefill",
        "decode",
    ]
    assert backend.calls[-1].rows == ((0, 1, 5),)
    assert backend.calls[-1].slots == (0,)


def test_fails_at_the_step_it_is_told() -> None:
    backend = ScriptedBackend(fail_at_step=2)
    token = start(backend, 0, PROMPT)
    with pytest.raises(RuntimeError, match="step 2"):
        backend.decode([Row(0, token, 5)], [1])


def test_close_twice_and_nothing_after() -> None:
    backend = ScriptedBackend()
    backend.close()
    backend.close()
    with pytest.raises(AssertionError, match="open_slot after close"):
        backend.open_slot(0, SAMPLING, 1, PROMPT)


WRONG: dict[str, Callable[[ScriptedBackend, int], object]] = {
    "the next is 5": lambda backend, token: backend.decode([Row(0, token, 6)], [1]),
    "was drawn": lambda backend, token: backend.decode([Row(0, END, 5)], [1]),
    "draws index 3": lambda backend, token: backend.decode([Row(0, token, 5)], [3]),
    "slot 1 is not open": lambda backend, token: backend.decode([Row(1, token, 5)], [1]),
    "no rows": lambda backend, token: backend.decode([], []),
    "2 indices": lambda backend, token: backend.decode([Row(0, token, 5)], [1, 1]),
    "sorted and unique": lambda backend, token: backend.decode([Row(0, token, 5)] * 2, [1, 1]),
    "after a draw": lambda backend, token: backend.prefill([SlotChunk(0, [1, 2], 5)]),
    "chunk of 57": lambda backend, token: backend.prefill([SlotChunk(0, [1] * 57, 5)]),
    "chunk of 0": lambda backend, token: backend.prefill([SlotChunk(0, [], 5)]),
    "last call": lambda backend, token: backend.sample_prefill(0, 1),
    "no slot 9": lambda backend, token: backend.open_slot(9, SAMPLING, 1, PROMPT),
    "not empty": lambda backend, token: backend.move_slot(0, 0),
}


@pytest.mark.parametrize("message", WRONG)
def test_says_what_is_wrong(message: str) -> None:
    backend = ScriptedBackend()
    token = start(backend, 0, PROMPT)
    with pytest.raises(AssertionError, match=message):
        WRONG[message](backend, token)


def test_slots_must_be_dense() -> None:
    backend = ScriptedBackend()
    token = start(backend, 1, PROMPT)
    with pytest.raises(AssertionError, match="not dense"):
        backend.decode([Row(1, token, 5)], [1])


def test_a_sequence_must_fit_into_the_context() -> None:
    backend = ScriptedBackend(context_tokens=6)
    token = start(backend, 0, PROMPT)
    (token,) = backend.decode([Row(0, token, 5)], [1])
    with pytest.raises(AssertionError, match="full"):
        backend.decode([Row(0, token, 6)], [2])


def test_a_draw_needs_the_whole_prompt() -> None:
    backend = ScriptedBackend()
    backend.open_slot(0, SAMPLING, 1, PROMPT)
    backend.prefill([SlotChunk(0, PROMPT[:3], 0)])
    with pytest.raises(AssertionError, match="not whole"):
        backend.sample_prefill(0, 0)


def test_a_prompt_is_its_history() -> None:
    backend = ScriptedBackend()
    backend.open_slot(0, SAMPLING, 1, PROMPT)
    with pytest.raises(AssertionError, match="other tokens"):
        backend.prefill([SlotChunk(0, [1, 2], 0)])


@pytest.mark.parametrize(
    ("message", "parts"),
    {
        "unequal": [(0, 3), (1, 4)],
        "no neighbours": [(0, 3), (2, 3)],
        "lone rows": [(0, 1), (1, 1)],
        "66 rows": [(0, 33), (1, 33)],
    }.items(),
)
def test_chunks_computed_together_are_alike(message: str, parts: list[tuple[int, int]]) -> None:
    backend = ScriptedBackend()
    for slot in range(3):
        backend.open_slot(slot, SAMPLING, 1, PROMPT * 10)
    with pytest.raises(AssertionError, match=message):
        backend.prefill([SlotChunk(slot, (PROMPT * 10)[:size], 0) for slot, size in parts])


def test_a_chunk_without_an_output_gives_no_draw() -> None:
    backend = ScriptedBackend()
    backend.open_slot(0, SAMPLING, 1, PROMPT)
    backend.prefill([SlotChunk(0, PROMPT, 0, has_output=False)])
    with pytest.raises(AssertionError, match="no output"):
        backend.sample_prefill(0, 0)
