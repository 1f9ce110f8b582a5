"""What the clients of `experiments.serving` send. Pure: the same seed and round give the same texts.

Texts are of words that are one token each in the usual vocabularies, a space before them included. The
rounds of a workload share nothing: what a round finds in a cache was put there by the round itself.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

_TEXT = """
river stone cloud lantern harbour meadow winter engine paper silver garden bridge mountain forest
island ocean window kitchen table music doctor teacher student market village castle summer spring
autumn morning evening night story letter number colour water fire earth metal glass wood cotton
bread butter cheese apple orange lemon coffee sugar salt pepper horse sheep tiger eagle fish snake
train plane ship road street corner tower church school office hospital library museum theatre
camera radio computer phone clock mirror picture pencil book page chapter word sentence language
history science nature weather rain snow wind storm sun moon star planet space rocket machine tool
hammer wheel chain rope knife sword shield armor crown king queen prince soldier captain pilot
driver farmer baker painter writer singer dancer player coach team game ball field court prize
money bank price trade
"""
_WORDS = _TEXT.split()

PROMPT_TOKENS = 64
SHARED_TOKENS, OWN_TOKENS = 500, 24
TURN_TOKENS = 32
#: With ``LONG_OUTPUT_TOKENS`` it fits a context of 2,048.
LONG_TOKENS = 2000
LONG_OUTPUT_TOKENS = 16
#: More than a stream of `long` gets to write before it is closed; with its prompt it fits as well.
STREAM_TOKENS = 1900


@dataclass(frozen=True, slots=True)
class Load:
    """``scripts``: of each client, what it says one after the other, and waits for each answer. In
    a chat it sends the whole conversation each time. ``streams`` run beside the clients."""

    scripts: tuple[tuple[str, ...], ...]
    is_chat: bool = False
    streams: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Workload:
    """``make`` is given the randomness of the round, clients and requests per client."""

    name: str
    title: str
    clients: int
    requests: int
    make: Callable[[random.Random, int, int], Load]

    def load(self, seed: int, round_number: int, clients: int, requests: int) -> Load:
        return self.make(random.Random(f"{seed} {round_number} {self.name}"), clients, requests)


def make_words(rng: random.Random, num_tokens: int) -> str:
    """So many words, each with a space before it."""
    return "".join(f" {word}" for word in rng.choices(_WORDS, k=num_tokens))


def _random(rng: random.Random, clients: int, requests: int) -> Load:
    return Load(
        tuple(
            tuple(make_words(rng, PROMPT_TOKENS) for _ in range(requests)) for _ in range(clients)
        )
    )


def _shared(rng: random.Random, clients: int, requests: int) -> Load:
    shared = make_words(rng, SHARED_TOKENS)
    return Load(
        tuple(
            tuple(shared + make_words(rng, OWN_TOKENS) for _ in range(requests))
            for _ in range(clients)
        )
    )


def _chats(rng: random.Random, clients: int, turns: int) -> Load:
    scripts = tuple(
        tuple(make_words(rng, TURN_TOKENS).lstrip() for _ in range(turns)) for _ in range(clients)
    )
    return Load(scripts, is_chat=True)


def _long(rng: random.Random, streams: int, arrivals: int) -> Load:
    return Load(
        (tuple(make_words(rng, LONG_TOKENS) for _ in range(arrivals)),),
        streams=tuple(make_words(rng, PROMPT_TOKENS) for _ in range(streams)),
    )


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("random", "distinct random prompts of 64 tokens", 16, 2, _random),
        Workload("shared", "500 shared and 24 own tokens", 16, 2, _shared),
        Workload("chats", "the whole conversation each turn", 8, 4, _chats),
        Workload("long", "running streams, and prompts of 2,000 tokens that arrive", 7, 1, _long),
    )
}
