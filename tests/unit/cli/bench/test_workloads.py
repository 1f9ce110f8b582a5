"""What the clients of the serving benchmark send."""

import pytest

from experiments.serving_workloads import (
    OWN_TOKENS,
    PROMPT_TOKENS,
    SHARED_TOKENS,
    WORKLOADS,
    Load,
)


def load(name: str, round_number: int = 1, seed: int = 5) -> Load:
    return WORKLOADS[name].load(seed, round_number, 3, 2)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_seed_and_a_round_are_a_load(name: str) -> None:
    assert load(name) == load(name)
    others = (load(name, round_number=2), load(name, seed=6))
    assert all(other != load(name) for other in others)


@pytest.mark.parametrize("name", WORKLOADS)
def test_rounds_share_no_beginning(name: str) -> None:
    firsts = [load(name, number).scripts[0][0].split()[:4] for number in range(4)]
    assert len({tuple(words) for words in firsts}) == 4


def test_random_prompts_are_of_their_length_and_differ() -> None:
    prompts = [prompt for script in load("random").scripts for prompt in script]
    assert [len(prompt.split()) for prompt in prompts] == [PROMPT_TOKENS] * 6
    assert len(set(prompts)) == 6


def test_shared_prompts_are_the_same_up_to_their_own_words() -> None:
    prompts = [prompt.split() for script in load("shared").scripts for prompt in script]
    assert {tuple(words[:SHARED_TOKENS]) for words in prompts} == {
        tuple(prompts[0][:SHARED_TOKENS])
    }
    assert {len(words) for words in prompts} == {SHARED_TOKENS + OWN_TOKENS}
    assert len({tuple(words) for words in prompts}) == 6


def test_a_chat_has_a_text_for_each_turn() -> None:
    chats = load("chats")
    assert chats.is_chat
    assert [len(script) for script in chats.scripts] == [2, 2, 2]


def test_streams_run_beside_the_one_client_of_long_prompts() -> None:
    long = load("long")
    assert [len(script) for script in long.scripts] == [2]
    assert len(set(long.streams)) == 3
    assert len(long.scripts[0][0].split()) == 2000
