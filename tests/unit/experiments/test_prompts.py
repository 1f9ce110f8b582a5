"""Prompts of the experiments."""

import zlib

from experiments.prompts import make_prompt, make_text


def test_prompts_have_the_words_asked_for_and_differ() -> None:
    prompts = {make_prompt(number, 20) for number in range(200)}
    assert len(prompts) == 200
    assert all(len(prompt.split()) == 22 for prompt in prompts)


def test_a_text_has_exactly_its_length_and_compresses_no_better_than_prose() -> None:
    text = make_text(3, 2000)
    assert len(text) == 2000
    assert len(zlib.compress(text.encode())) > 800
