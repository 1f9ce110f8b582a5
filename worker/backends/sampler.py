"""How one sequence draws its tokens: a chain of llama.cpp's samplers, seeded anew for each draw.

A draw is a function of the logits, the seed, the number of tokens before it and, with penalties, of
the tokens themselves. The context and its rows are the backend's.
"""

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import llama_cpp as llama
import numpy as np

from shared.protocol import Alternative, Sampling, TokenLogprob
from worker.backends.base import Remark
from worker.backends.constraint import Constraint, Logits
from worker.backends.likelihood import Likelihood
from worker.backends.vocabulary import Vocabulary

PENALTY_LAST_TOKENS = 64  #: llama-server's default
MIN_TEMPERATURE = 1e-6  #: below it a logit divided by it may overflow: the limit is greedy


def derive_seed(seed: int, index: int) -> int:
    """The seed of one draw: 32 bits of a splitmix64 step, and never 0xFFFFFFFF ("random")."""
    mixed = (((seed << 32) | index) + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return (mixed ^ (mixed >> 31)) % 0xFFFFFFFF


class Sampler:
    """``history`` is what the penalties see first. ``remark`` is on the last draw."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        sampling: Sampling,
        seed: int,
        history: Sequence[int],
        constraint: Constraint | None = None,
    ) -> None:
        self._vocabulary = vocabulary
        self._seed = seed
        self._constraint = constraint
        self._num_top = sampling.logprobs
        self.remark: Remark | None = None
        self._is_greedy = sampling.temperature < MIN_TEMPERATURE
        self._chain = _owned(
            llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        )
        has_penalties = (
            sampling.repeat_penalty != 1
            or sampling.frequency_penalty != 0
            or sampling.presence_penalty != 0
        )
        try:
            for link in _chain_links(vocabulary, sampling, has_penalties):
                llama.llama_sampler_chain_add(self._chain, _owned(link))
        except BaseException:
            self.close()
            raise
        if has_penalties:
            for token in history[-PENALTY_LAST_TOKENS:]:
                llama.llama_sampler_accept(self._chain, token)

    def draw(self, context: Any, row: int, index: int) -> int:
        if self._constraint is None and self._num_top is None:
            return self._draw(context, row, index)
        pointer = llama.llama_get_logits_ith(context, row)
        logits: Logits = np.ctypeslib.as_array(pointer, (self._vocabulary.num_tokens,))
        likelihood = None if self._num_top is None else Likelihood(logits, self._num_top)
        constraint = self._constraint
        if constraint is not None:
            constraint.mask(logits)
            if constraint.error:
                self.remark = Remark(error=constraint.error)
                return -1
        token = self._draw(context, row, index)
        if constraint is not None:
            constraint.accept(token)
        self.remark = Remark(
            logprob=None if likelihood is None else self._told(token, likelihood),
            is_last=constraint is not None and constraint.is_complete,
            error="" if constraint is None else constraint.error,
        )
        return token

    def _told(self, token: int, likelihood: Likelihood) -> TokenLogprob:
        def text(t: int) -> tuple[int, ...]:
            return tuple(self._vocabulary.text_bytes(t))

        top = tuple(Alternative(token=t, bytes=text(t), logprob=p) for t, p in likelihood.top)
        return TokenLogprob(token=token, bytes=text(token), logprob=likelihood.of(token), top=top)

    def _draw(self, context: Any, row: int, index: int) -> int:
        if not self._is_greedy:
            last = llama.llama_sampler_chain_n(self._chain) - 1
            llama.llama_sampler_free(llama.llama_sampler_chain_remove(self._chain, last))
            link = llama.llama_sampler_init_dist(derive_seed(self._seed, index))
            llama.llama_sampler_chain_add(self._chain, _owned(link))
        return int(llama.llama_sampler_sample(self._chain, context, row))

    def close(self) -> None:
        if self._chain:
            llama.llama_sampler_free(self._chain)
        self._chain = None


def _chain_links(vocabulary: Vocabulary, sampling: Sampling, has_penalties: bool) -> Iterator[Any]:
    """llama-server's samplers in llama-server's order, without those that would do nothing."""
    num_vocab = vocabulary.num_tokens
    count = ctypes.c_int32(0)
    suppressed = llama.llama_vocab_get_suppress_tokens(vocabulary.handle, ctypes.byref(count))
    banned = {suppressed[i] for i in range(count.value)}
    if sampling.ignore_eos:
        banned |= vocabulary.ends
    biases = sampling.logit_bias | dict.fromkeys(banned, -float("inf"))
    if biases:
        array = (llama.llama_logit_bias * len(biases))(*biases.items())
        yield llama.llama_sampler_init_logit_bias(num_vocab, len(biases), array)
    if has_penalties:
        yield llama.llama_sampler_init_penalties(
            num_vocab,
            PENALTY_LAST_TOKENS,
            sampling.repeat_penalty,
            sampling.frequency_penalty,
            sampling.presence_penalty,
        )
    if sampling.temperature < MIN_TEMPERATURE:
        yield llama.llama_sampler_init_greedy()
        return
    yield llama.llama_sampler_init_top_k(sampling.top_k)
    yield llama.llama_sampler_init_top_p(sampling.top_p, 1)
    yield llama.llama_sampler_init_min_p(sampling.min_p, 1)
    yield llama.llama_sampler_init_temp(sampling.temperature)
    yield llama.llama_sampler_init_dist(0)  # replaced before each draw


def _owned(sampler: Any) -> Any:
    if not sampler:
        raise MemoryError("llama.cpp could not make a sampler")
    return sampler
