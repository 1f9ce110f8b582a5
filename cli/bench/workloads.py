"""What clients send. Pure: the same seed gives the same requests, in the same order, to each server.

Nothing is shared between two runs: what a run finds in a cache was put there by the run itself, or by
its like on the same server, but for the texts that a trace brings with it.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from cli.bench.asks import Ask
from cli.bench.words import WORD_IS_TOKEN, Rate, make_words

#: What one client says one after the other; it waits for each answer. In a chat, what was said before
#: goes with it each time.
Script = tuple[Ask, ...]

#: Of `long`: what a running stream is asked first, and how much it may write before it is closed. With
#: its prompt it fits a context of 2,048, and so does the long prompt.
STREAM_PROMPT_TOKENS = 64
STREAM_TOKENS = 1900


@dataclass(frozen=True, slots=True)
class Lengths:
    """In tokens, as the server counts them. ``rate`` is what the first server was seen to count."""

    prompt_tokens: int
    output_tokens: int
    prefix_tokens: int = 0
    turns: int = 1
    rate: Rate = WORD_IS_TOKEN

    def with_rate(self, rate: Rate) -> "Lengths":
        return replace(self, rate=rate)


@dataclass(frozen=True, slots=True)
class Workload:
    """``clients`` and ``requests`` (None: two for each client, or one conversation) unless given;
    ``prompt_tokens`` of a chat are those of a turn, of `shared-prefix` those after the prefix."""

    name: str
    title: str
    prompt_tokens: int
    output_tokens: int
    draw: Callable[[random.Random, Lengths], Iterator[Script]]
    prefix_tokens: int = 0
    turns: int = 1
    clients: int = 16
    requests: int | None = None


def _random(rng: random.Random, lengths: Lengths) -> Iterator[Script]:
    num_words = lengths.rate.words_of(lengths.prompt_tokens)
    while True:
        yield (Ask(lengths.output_tokens, make_words(rng, num_words)),)


def _shared(rng: random.Random, lengths: Lengths) -> Iterator[Script]:
    prefix = make_words(rng, lengths.rate.words_of(lengths.prefix_tokens))
    num_words = lengths.rate.words_of(lengths.prompt_tokens, is_part=True)
    while True:
        yield (Ask(lengths.output_tokens, prefix + make_words(rng, num_words)),)


def _chat(rng: random.Random, lengths: Lengths) -> Iterator[Script]:
    num_words = lengths.rate.words_of(lengths.prompt_tokens, is_part=True)
    while True:
        texts = [make_words(rng, num_words).lstrip() for _ in range(lengths.turns)]
        yield tuple(
            Ask(lengths.output_tokens, messages=({"role": "user", "content": text},))
            for text in texts
        )


def stream_asks(rng: random.Random, lengths: Lengths, count: int) -> tuple[Ask, ...]:
    num_words = lengths.rate.words_of(STREAM_PROMPT_TOKENS)
    return tuple(Ask(STREAM_TOKENS, make_words(rng, num_words)) for _ in range(count))


def draw_scripts(
    workload: Workload, lengths: Lengths, seed: str, requests: int | None
) -> Iterator[Script]:
    """Without end unless ``requests`` says how many there are in all."""
    left = requests
    for script in workload.draw(random.Random(seed), lengths):
        if left is not None:
            script = script[:left]
            left -= len(script)
        if not script:
            return
        yield script


LONG = "long"
WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("random", "prompts that share nothing", 64, 64, _random),
        Workload("shared-prefix", "one beginning, own ends", 24, 64, _shared, prefix_tokens=500),
        Workload("chat", "the whole conversation each turn", 32, 64, _chat, turns=4, clients=8),
        Workload(
            LONG, "running streams, and a long prompt that comes", 2000, 16, _random, 0, 1, 7, 1
        ),
    )
}
