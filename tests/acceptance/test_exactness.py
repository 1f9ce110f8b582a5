"""Exactness: a sequence's logits and tokens are the same, bit by bit, whatever runs beside it.

Each sequence is first generated alone. Then the same is asked in a batch, with other chunks, resumed
in the middle, moved to another slot, and with a hole beside it. The prompts begin alike: that head is
prefilled once for each model, and copied where a test is not about its chunks.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from shared.protocol import Sampling
from tests.models import model_as, truncate_slot
from worker.backends.base import Row, SlotChunk
from worker.backends.llama import LlamaBackend

pytestmark = pytest.mark.model

SLOTS = 5
HEAD_SLOT = SLOTS  #: keeps the first tokens of the text, for a run to begin with
HEAD_TOKENS = 504
SEED = 7
NUM_TOKENS = 12
SAMPLINGS = {
    "greedy": Sampling(temperature=0, ignore_eos=True),
    "seeded": Sampling(temperature=0.9, repeat_penalty=1.1, ignore_eos=True),
}
#: 248 tokens become 260: past 256 cells llama.cpp gives a row 512, and lone rows another kernel.
CASES = [(40, "greedy"), (40, "seeded"), (248, "seeded"), (528, "greedy")]
CASES_REDUCED = [(40, "seeded"), (248, "seeded"), (528, "greedy")]

#: format and threads; the first few get every test and case
WHOLE = [("Q4_1", 1), ("Q4_0", 1), ("BF16", 1)]
REDUCED = [("Q8_0", 1), ("F16", 1), ("Q4_0", 2), ("BF16", 2)]


def names(subjects: list[tuple[str, int]]) -> list[str]:
    return [f"{format_name}-{threads}t" for format_name, threads in subjects]


everywhere = pytest.mark.parametrize(
    "subject", WHOLE + REDUCED, ids=names(WHOLE + REDUCED), indirect=True
)
where_whole = pytest.mark.parametrize("subject", WHOLE, ids=names(WHOLE), indirect=True)


@pytest.fixture(scope="module")
def subject(request: pytest.FixtureRequest, model_directory: Path) -> Iterator["Subject"]:
    format_name, threads = request.param
    path = model_as(format_name, model_directory)
    backend = LlamaBackend(path, slots=SLOTS + 1, threads=threads, context_tokens=600)
    yield Subject(backend, CASES if request.param in WHOLE else CASES_REDUCED)
    backend.close()


@dataclass
class Run:
    """One sequence: the tokens drawn since it (re)started, and the logits each was drawn from."""

    slot: int
    position: int
    index: int
    tokens: list[int] = field(default_factory=list)
    logits: list[bytes] = field(default_factory=list)


class Subject:
    def __init__(self, backend: LlamaBackend, cases: list[tuple[int, str]]) -> None:
        self.backend = backend
        self.cases = cases
        text = topics["assignment"] + topics["compound"]
        self.text_tokens = backend.tokenize(text, raw=True)
        self._alone: dict[tuple[int, str], Run] = {}
        self._has_head = False

    def prompt(self, length: int) -> list[int]:
        return self.text_tokens[:length]

    def alone(self, length: int, sampling: str) -> Run:
        key = (length, sampling)
        if key not in self._alone:
            run = self.start(0, length, sampling)
            for _ in range(NUM_TOKENS - 1):
                self.step(run)
            self._alone[key] = run
            self.close(run)
        return self._alone[key]

    def start(
        self,
        slot: int,
        length: int,
        sampling: str,
        *,
        known: list[int] | None = None,
        size: Callable[[], int] | None = None,
    ) -> Run:
        """``known`` tokens were drawn before; a ``size`` of chunks means to prefill the head too."""
        known = known or []
        tokens = self.prompt(length) + known
        self.backend.open_slot(slot, SAMPLINGS[sampling], SEED, tokens)
        run = Run(slot, len(tokens), len(known))
        done = min(HEAD_TOKENS, length - 8)
        if size is None or done == HEAD_TOKENS:
            self._copy_head(slot, done)
        else:
            done = 0
        self._prefill(slot, tokens, done, size or (lambda: 56))
        run.tokens.append(self.backend.sample_prefill(slot, run.index))
        run.logits.append(self.backend.logits_bytes(slot))
        return run

    def start_beside(self, length: int, sampling: str, size: int) -> Run:
        """In a slot between two prompts of other tokens, in chunks of ``size`` for all three."""
        run = Run(1, length, 0)
        tokens = self.prompt(length)
        for slot in (0, 1, 2):
            self.backend.open_slot(slot, SAMPLINGS[sampling], SEED, tokens)
        done = max(0, min(HEAD_TOKENS, length - 64) // 2 * 2)
        self._copy_head(1, done)
        begun, odd = done, (length - done) % size
        if odd == 1:
            odd += size
        while done < length:
            count = odd if done == begun and odd else size
            beside = self.text_tokens[700 + done : 700 + done + count]
            at = done - begun
            self.backend.prefill(
                [
                    SlotChunk(0, beside, at, has_output=at % 3 == 0),
                    SlotChunk(
                        1, tokens[done : done + count], done, has_output=done + count == length
                    ),
                    SlotChunk(2, beside[::-1], at, has_output=at % 3 == 1),
                ]
            )
            done += count
        run.tokens.append(self.backend.sample_prefill(1, 0))
        run.logits.append(self.backend.logits_bytes(1))
        self.close(Run(0, 0, 0), Run(2, 0, 0))
        return run

    def _copy_head(self, slot: int, num_tokens: int) -> None:
        if not self._has_head:
            self._prefill(HEAD_SLOT, self.text_tokens[:HEAD_TOKENS], 0, lambda: 56)
            self._has_head = True
        self.backend.copy_slot(HEAD_SLOT, slot)
        truncate_slot(self.backend, slot, num_tokens)

    def _prefill(
        self, slot: int, tokens: list[int], position: int, size: Callable[[], int]
    ) -> None:
        while position < len(tokens):
            left = len(tokens) - position
            chunk = min(size(), left)
            chunk -= left - chunk == 1 and chunk > 2  # a remainder of one borrows
            self.backend.prefill([SlotChunk(slot, tokens[position : position + chunk], position)])
            position += chunk

    def step(self, *runs: Run) -> None:
        runs = tuple(sorted(runs, key=lambda run: run.slot))
        rows = [Row(run.slot, run.tokens[-1], run.position) for run in runs]
        tokens = self.backend.decode(rows, [run.index + len(run.tokens) for run in runs])
        for run, token in zip(runs, tokens, strict=True):
            run.tokens.append(token)
            run.logits.append(self.backend.logits_bytes(run.slot))
            run.position += 1

    def move(self, run: Run, slot: int) -> None:
        self.backend.move_slot(run.slot, slot)
        run.slot = slot

    def close(self, *runs: Run) -> None:
        for run in runs:
            self.backend.close_slot(run.slot)

    def close_all(self) -> None:
        for slot in range(SLOTS + 1):
            self.backend.close_slot(slot)
        self._has_head = False

    def finish(
        self, run: Run, length: int, sampling: str, *others: Run, num_tokens: int = NUM_TOKENS
    ) -> None:
        """Steps until ``run`` has as many tokens as alone, and compares all that it has drawn."""
        while run.index + len(run.tokens) < num_tokens:
            self.step(run, *others)
        self.close(run, *others)
        self.compare(run, length, sampling)

    def compare(self, run: Run, length: int, sampling: str) -> None:
        expected = self.alone(length, sampling)
        drawn = slice(run.index, run.index + len(run.tokens))
        pairs = zip(run.logits, expected.logits[drawn], strict=True)
        differing = [run.index + i for i, (logits, alone) in enumerate(pairs) if logits != alone]
        assert not differing, (
            f"{length} tokens, {sampling}: the logits of the tokens {differing} are others than alone"
        )
        assert run.tokens == expected.tokens[drawn]


def random_sizes(seed: int) -> Callable[[], int]:
    generator = random.Random(seed)
    return lambda: generator.randint(2, 56)


@everywhere
def test_in_a_batch_with_other_chunks(subject: Subject) -> None:
    for length, sampling in subject.cases:
        slots_beside = {0: 30, 1: 61, 3: 123}
        others = [subject.start(slot, beside, "greedy") for slot, beside in slots_beside.items()]
        run = subject.start(2, length, sampling, size=random_sizes(length))
        for _ in range(4):
            subject.step(run, *others)
        subject.close(others.pop())
        subject.finish(run, length, sampling, *others)


@everywhere
def test_its_prompt_computed_beside_others(subject: Subject) -> None:
    for length, sampling in subject.cases:
        for size in (2, 14, 20):
            run = subject.start_beside(length, sampling, size)
            subject.finish(run, length, sampling, num_tokens=3)


@everywhere
def test_resumed_and_moved(subject: Subject) -> None:
    for length, sampling in subject.cases:
        known = subject.alone(length, sampling).tokens[:5]
        other = subject.start(0, 30, "greedy")
        run = subject.start(1, length, sampling, known=known)
        subject.step(other, run)
        subject.step(other, run)
        subject.close(other)
        subject.move(run, 0)
        subject.finish(run, length, sampling)


@where_whole
def test_chunks_of_any_size(subject: Subject) -> None:
    for size in (2, 5, 31):
        run = subject.start(0, 40, "greedy", size=lambda size=size: size)  # type: ignore[misc]
        subject.finish(run, 40, "greedy", num_tokens=4)


@where_whole
def test_resumed_at_any_token(subject: Subject) -> None:
    for count in (1, 7):
        known = subject.alone(40, "seeded").tokens[:count]
        run = subject.start(SLOTS - 1, 40, "seeded", known=known, size=lambda: 56)
        subject.finish(run, 40, "seeded")


@where_whole
@pytest.mark.parametrize(
    "slots",
    [(0, 1), tuple(range(SLOTS)), (0, 2), (0, 1, 3)],
    ids=["two rows", "all rows", "a hole between", "a hole after two"],
)
def test_every_row_of_a_batch(subject: Subject, slots: tuple[int, ...]) -> None:
    lengths = [248, 40, 30, 123, 61][: len(slots)]
    runs = [
        subject.start(slot, length, "seeded") for slot, length in zip(slots, lengths, strict=True)
    ]
    for _ in range(NUM_TOKENS - 1):
        subject.step(*runs)
    subject.close(*runs)
    for run, length in zip(runs, lengths, strict=True):
        subject.compare(run, length, "seeded")


@everywhere
def test_a_chunk_of_one_token(subject: Subject) -> None:
    prompt = subject.prompt(40)
    subject.backend.open_slot(0, SAMPLINGS["seeded"], SEED, prompt)
    subject.backend.prefill([SlotChunk(0, prompt[:39], 0)])
    subject.backend.prefill([SlotChunk(0, prompt[39:], 39)])
    logits = subject.backend.logits_bytes(0)
    subject.backend.close_slot(0)
    assert logits == subject.alone(40, "seeded").logits[0]


@everywhere
def test_the_self_check_agrees(subject: Subject) -> None:
    subject.close_all()
    assert subject.backend.check_batch_invariance(budget_s=20)


@pytest.mark.parametrize(
    ("format_name", "is_invariant"),
    [("Q4_0 and F16", True), ("Q4_K_M", False)],
    ids=["pads Q4_0 with an output matrix in F16", "finds a K-quant"],
)
def test_the_self_check(model_directory: Path, format_name: str, is_invariant: bool) -> None:
    path = model_as(format_name, model_directory)
    backend = LlamaBackend(path, slots=SLOTS, threads=1, context_tokens=600)
    found = backend.check_batch_invariance(budget_s=20)
    backend.close()
    assert found == is_invariant
