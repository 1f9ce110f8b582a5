"""A closed loop on one engine: so many clients, each of which asks again as soon as it was answered.

Knows no model and no process; the clock is given.
"""

import random
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass

from shared.protocol import EndEvent, GenerateRequest, JobArgs
from shared.trials import RequestShape, Step
from worker.engine import Engine
from worker.sequence import JobTimes, Sequence

#: First prompts that are cut keep so many tokens, but one: it shows how fast whole chunks go.
_SHORT_TOKENS = 4
_LONG_CHUNKS = 2
#: A context so short costs attention little: then the first prompts need not be whole.
_LIGHT_PROMPT_TOKENS = 128
#: A window without so many first tokens goes on, up to twice its length.
_ENOUGH_FIRST_TOKENS = 5


@dataclass(slots=True)
class _Asked:
    submitted_s: float
    is_first: bool
    sequence: Sequence | None = None
    num_seen: int = 0
    last_s: float = 0.0


@dataclass(slots=True)
class Observed:
    begin_s: float
    end_s: float
    steps: list[Step]
    ttft_ms: list[float]
    itl_ms: list[float]
    requests: int


class Clients:
    """Outputs of the first requests are cut at random, so that the clients stand at all points of
    their answers from the start, as they would after a while."""

    def __init__(
        self,
        engine: Engine,
        *,
        num_clients: int,
        num_vocab: int,
        shapes: Seq[RequestShape],
        chunk_tokens: int,
        seed: int,
        is_short: bool,
        clock: Callable[[], float],
    ) -> None:
        self._engine = engine
        self._num_clients = num_clients
        self._num_vocab = num_vocab
        self._shapes = shapes
        self._chunk_tokens = chunk_tokens
        self._random = random.Random(seed)
        self._is_short = is_short
        self._clock = clock
        self._num_asked = 0
        self._waiting: deque[tuple[RequestShape, _Asked]] = deque()
        self._running: dict[str, _Asked] = {}
        self._ttft: list[tuple[float, bool, float]] = []  #: when, of a first request, ms
        self._itl: list[tuple[float, float]] = []
        self._ends_s: list[float] = []
        self._steps: list[Step] = []

    def run(self, window_s: float, max_warmup_s: float) -> Observed:
        """The window begins when all slots that will be used have given a token."""
        start_s = self._clock()
        num_first = min(self._num_clients, self._engine.num_free_slots)
        for number in range(self._num_clients):
            self._ask(start_s, number)
        begin_s: float | None = None
        while True:
            now_s = self._step()
            if begin_s is None:
                if len(self._ttft) >= num_first or now_s - start_s >= max_warmup_s:
                    begin_s = now_s
            elif now_s - begin_s >= window_s and (
                self._is_short
                or now_s - begin_s >= 2 * window_s
                or self._num_first_tokens(begin_s) >= _ENOUGH_FIRST_TOKENS
            ):
                return self._observed(begin_s, now_s)

    def _num_first_tokens(self, begin_s: float) -> int:
        return sum(at_s > begin_s and not is_first for at_s, is_first, _ in self._ttft)

    def _ask(self, now_s: float, first_number: int | None = None) -> None:
        shape = self._random.choice(self._shapes)
        if first_number is not None:
            shape = self._first_shape(shape, first_number)
        self._waiting.append((shape, _Asked(now_s, is_first=first_number is not None)))

    def _first_shape(self, shape: RequestShape, number: int) -> RequestShape:
        prompt_tokens = shape.prompt_tokens
        if self._is_short or prompt_tokens <= _LIGHT_PROMPT_TOKENS:
            most = _LONG_CHUNKS * self._chunk_tokens if number == 0 else _SHORT_TOKENS
            prompt_tokens = min(prompt_tokens, most)
        output_tokens = self._random.randint(1, shape.output_tokens)
        if self._is_short:  # all rows together are what a short trial is to see
            output_tokens = shape.output_tokens
        return RequestShape(prompt_tokens=prompt_tokens, output_tokens=output_tokens)

    def _step(self) -> float:
        began_s = self._clock()
        while self._waiting and self._engine.num_free_slots:
            self._admit(*self._waiting.popleft(), began_s)
        computed, drawn = self._num_computed, self._engine.num_generated
        ended = [s.job_id for s, event in self._engine.step() if isinstance(event, EndEvent)]
        now_s = self._clock()
        num_rows = sum([self._note_token(asked, now_s) for asked in self._running.values()])
        self._steps.append(
            Step(
                end_s=now_s,
                spent_s=now_s - began_s,
                output_tokens=self._engine.num_generated - drawn,
                # A row that was decoded computed one token; what is left was prompt.
                prompt_tokens=self._num_computed - computed - num_rows,
            )
        )
        for job_id in ended:
            del self._running[job_id]
            self._ends_s.append(now_s)
            self._ask(now_s)
        return now_s

    @property
    def _num_computed(self) -> int:
        return sum(a.sequence.num_computed for a in self._running.values() if a.sequence)

    def _note_token(self, asked: _Asked, now_s: float) -> bool:
        """Whether it got a token that was decoded, not the one that ends its prefill."""
        assert asked.sequence is not None
        if len(asked.sequence.output) == asked.num_seen:
            return False
        is_first = asked.num_seen == 0
        if is_first:
            self._ttft.append((now_s, asked.is_first, (now_s - asked.submitted_s) * 1000))
        else:
            self._itl.append((now_s, (now_s - asked.last_s) * 1000))
        asked.num_seen, asked.last_s = len(asked.sequence.output), now_s
        return not is_first

    def _admit(self, shape: RequestShape, asked: _Asked, now_s: float) -> None:
        self._num_asked += 1
        job_id = str(self._num_asked)
        prompt = [self._random.randrange(self._num_vocab) for _ in range(shape.prompt_tokens)]
        request = GenerateRequest.model_validate(
            {"prompt_token_ids": prompt, "max_tokens": shape.output_tokens, "ignore_eos": True}
        )
        args = JobArgs(request=request, seed=self._random.randrange(2**31))
        times = JobTimes(queued_s=0, before_attempt_s=0, began_s=now_s)
        asked.sequence = self._engine.admit(job_id, 1, args, times)[0][0]
        self._running[job_id] = asked

    def _observed(self, begin_s: float, end_s: float) -> Observed:
        later = [ms for at_s, is_first, ms in self._ttft if at_s > begin_s and not is_first]
        return Observed(
            begin_s=begin_s,
            end_s=end_s,
            steps=self._steps,
            ttft_ms=later,
            itl_ms=[ms for at_s, ms in self._itl if at_s > begin_s],
            requests=sum(at_s > begin_s for at_s in self._ends_s),
        )
