"""On real models: what starts from a slot or a snapshot has the tokens of a cold run, bit for bit."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from shared.protocol import EndEvent, TokenEvent
from tests.factories import make_args, make_times
from tests.gemma import gemma_path
from tests.models import model_as
from worker.backends.llama import LlamaBackend
from worker.cache_figures import CacheFigures
from worker.engine import Engine
from worker.pace import Pace
from worker.prefix_cache import PrefixCache
from worker.reuse import Rules
from worker.snapshots.claims import Claims
from worker.snapshots.shelf import Shelf
from worker.snapshots.store import Store
from worker.snapshots.writer import Writer

#: A model, and its grid of prompt chunks.
CASES = [("Q4_1", 0), ("BF16", 0), ("Gemma", 0), ("Q4_1", 256), ("Gemma", 256)]
NUM_DRAWN = 8


class Worker:
    """An engine as a worker has it. ``shared``: the host directory; none: it computes all."""

    def __init__(self, backend: LlamaBackend, grid: int, shared: Path | None) -> None:
        self._backend = backend
        rules = Rules(backend.facts.window_tokens, grid, min_tokens=32)
        pace, figures = Pace(0.1), CacheFigures()
        self.shelf: Shelf | None = None
        if shared is not None:
            store = Store(shared, fingerprint="f" * 32, max_bytes=2**31, ttl_s=3600)
            claims = Claims(shared / "claims", fingerprint="f" * 32)
            self.shelf = Shelf(store, claims, Writer(store, 2**28))
        cache = PrefixCache(backend, rules, pace, figures, shelf=self.shelf)
        self.engine = Engine(
            backend,
            worker="w",
            chunk_tokens=56,
            grid_tokens=grid,
            pace=pace,
            cache=cache if shared is not None else None,
            figures=figures,
        )

    def admit(self, job_id: str, tokens: list[int], known: list[int] | None = None) -> None:
        fields = {"prompt_token_ids": tokens, "max_tokens": NUM_DRAWN, "ignore_eos": True}
        args = make_args(prompt=None, raw=False, seed=7, **fields)  # type: ignore[arg-type]
        self.engine.admit(job_id, 1, args, make_times(), known=known)

    def run(self, until: int = 10_000) -> dict[str, tuple[list[int], int]]:
        """Tokens, and how many of the prompt were not computed, by job."""
        tokens: dict[str, list[int]] = {}
        cached = {}
        for _ in range(until):
            if not self.engine.num_active:
                break
            for sequence, event in self.engine.step():
                if isinstance(event, TokenEvent):
                    tokens.setdefault(sequence.job_id, []).extend(event.tokens)
                elif isinstance(event, EndEvent):
                    cached[sequence.job_id] = event.usage.cached_tokens
        if self.shelf:
            assert self.shelf.writer.flush(30)
        return {job_id: (tokens[job_id], cached.get(job_id, -1)) for job_id in tokens}


@dataclass
class Pair:
    """Two backends of one model, and what it says without any cache."""

    grid: int
    backends: tuple[LlamaBackend, LlamaBackend]
    _cold: dict[tuple[int, ...], list[int]] = field(default_factory=dict)

    def workers(self, shared: Path) -> tuple[Worker, Worker]:
        one, other = (Worker(backend, self.grid, shared) for backend in self.backends)
        return one, other

    def text(self, num: int) -> list[int]:
        text = " ".join(
            f"Chapter {i} tells of the {i * 37 % 100} rivers of {i}." for i in range(80)
        )
        return self.backends[0].tokenize(text, raw=True)[:num]

    def cold(self, tokens: list[int]) -> list[int]:
        key = tuple(tokens)
        if key not in self._cold:
            worker = Worker(self.backends[0], self.grid, None)
            worker.admit("cold", tokens)
            self._cold[key] = worker.run()["cold"][0]
        return self._cold[key]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def pair(request: pytest.FixtureRequest, model_directory: Path) -> Iterator[Pair]:
    name, grid = request.param
    is_gemma = name == "Gemma"
    path = gemma_path(model_directory) if is_gemma else model_as(name, model_directory)
    one, other = (
        LlamaBackend(path, slots=3, threads=1, context_tokens=768, prefill_grid=grid)
        for _ in range(2)
    )
    yield Pair(grid, (one, other))
    one.close()
    other.close()


@pytest.mark.parametrize("num_shared", [90, 547])
def test_a_prompt_that_begins_like_one_of_another_worker(
    pair: Pair, tmp_path: Path, num_shared: int
) -> None:
    one, other = pair.workers(tmp_path)
    base, rest = pair.text(580), pair.text(60)
    one.admit("a", base)
    assert one.run()["a"] == (pair.cold(base), 0)
    # Twice: where a window forbids to trim, the second stores what they have in common.
    for job_id, own in (("b", rest[20:50]), ("c", rest[5:45])):
        prompt = base[:num_shared] + own
        other.admit(job_id, prompt)
        tokens, cached = other.run()[job_id]
        assert tokens == pair.cold(prompt)
    border = num_shared - num_shared % (pair.grid or 1)
    assert cached == border


def test_the_same_prompt_again_and_its_answer_continued(pair: Pair, tmp_path: Path) -> None:
    one, other = pair.workers(tmp_path)
    prompt = pair.text(580)
    one.admit("a", prompt)
    answer, _ = one.run()["a"]
    other.admit("b", prompt)
    assert other.run()["b"] == (answer, 512 if pair.grid else 578)
    longer = [*prompt, *answer, *pair.text(40)[10:]]
    other.admit("c", longer)
    tokens, cached = other.run()["c"]
    assert tokens == pair.cold(longer)
    assert cached >= (512 if pair.grid else 578)


def test_three_at_once_that_begin_alike(pair: Pair, tmp_path: Path) -> None:
    worker, _ = pair.workers(tmp_path)
    base, rest = pair.text(547), pair.text(80)
    prompts = {str(i): base + rest[i * 20 : i * 20 + 20 + i] for i in range(3)}
    for job_id, prompt in prompts.items():
        worker.admit(job_id, prompt)
    told = worker.run()
    for job_id, prompt in prompts.items():
        assert told[job_id][0] == pair.cold(prompt)
    assert sorted(cached for _, cached in told.values())[1:] == [512 if pair.grid else 547] * 2


@pytest.mark.parametrize("num_known", [0, 4], ids=["in its prompt", "in its answer"])
def test_a_parked_job_goes_on_in_another_worker(pair: Pair, tmp_path: Path, num_known: int) -> None:
    one, other = pair.workers(tmp_path)
    prompt = pair.text(547)
    one.admit("a", prompt)
    [sequence] = one.engine.scheduler.sequences
    while not sequence.num_computed or len(sequence.output) < num_known:
        one.engine.step()
    known = sequence.output[: sequence.num_released]
    one.engine.park(sequence)
    other.admit("a", prompt, known)
    resumed = other.engine.scheduler.sequences[0].num_computed
    assert resumed >= (len(prompt) + num_known - 1 if num_known else 1)
    assert known + other.run()["a"][0] == pair.cold(prompt)


@pytest.mark.parametrize("name", ["Q4_1", "BF16"])
def test_workers_of_one_and_of_two_threads_take_up_each_others_prompts(
    model_directory: Path, tmp_path: Path, name: str
) -> None:
    path = model_as(name, model_directory)
    backends = [
        LlamaBackend(path, slots=2, threads=threads, context_tokens=768, prefill_grid=0)
        for threads in (1, 2)
    ]
    pair = Pair(0, (backends[0], backends[1]))
    base, rest = pair.text(580), pair.text(60)
    for place, (first, second) in enumerate(((0, 1), (1, 0))):
        workers = pair.workers(tmp_path / str(place))
        workers[first].admit("a", base)
        assert workers[first].run()["a"] == (pair.cold(base), 0)
        prompt = base[:547] + rest[20:50]
        workers[second].admit("b", prompt)
        assert workers[second].run()["b"] == (pair.cold(prompt), 547)
    for backend in backends:
        backend.close()
