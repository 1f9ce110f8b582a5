"""On real models: what starts from a slot or a snapshot has the tokens of a cold run, bit for bit."""

from collections.abc import Iterator
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

MODELS = ["Q4_1", "BF16", "Gemma"]
NUM_DRAWN = 12


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


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest, model_directory: Path) -> Path:
    if request.param == "Gemma":
        return gemma_path(model_directory)
    return model_as(request.param, model_directory)


@pytest.fixture(scope="module", params=[0, 256], ids=["anywhere", "grid"])
def grid(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def pair(model: Path, grid: int) -> Iterator[tuple[LlamaBackend, LlamaBackend]]:
    backends = [
        LlamaBackend(model, slots=3, threads=1, context_tokens=1280, prefill_grid=grid)
        for _ in range(2)
    ]
    yield backends[0], backends[1]
    for backend in backends:
        backend.close()


def text_tokens(backend: LlamaBackend, num: int) -> list[int]:
    text = " ".join(
        f"Chapter {i} tells of the {i * 37 % 100} rivers of land {i}." for i in range(90)
    )
    return backend.tokenize(text, raw=True)[:num]


def cold(backend: LlamaBackend, grid: int, tokens: list[int]) -> list[int]:
    worker = Worker(backend, grid, None)
    worker.admit("cold", tokens)
    return worker.run()["cold"][0]


@pytest.mark.parametrize("num_shared", [90, 530, 701])
def test_a_prompt_that_begins_like_one_of_another_worker(
    pair: tuple[LlamaBackend, LlamaBackend], grid: int, tmp_path: Path, num_shared: int
) -> None:
    one, other = (Worker(backend, grid, tmp_path) for backend in pair)
    base = text_tokens(pair[0], 740)
    rest = text_tokens(pair[0], 60)
    one.admit("a", base)
    first = one.run()["a"]
    assert first == (cold(pair[0], grid, base), 0)
    # Twice: where a window forbids to trim, the second stores what they have in common.
    for job_id, prompt in (("b", rest[20:50]), ("c", rest[5:45])):
        prompt = base[:num_shared] + prompt
        other.admit(job_id, prompt)
        tokens, cached = other.run()[job_id]
        assert tokens == cold(pair[0], grid, prompt)
    border = num_shared - num_shared % (grid or 1)
    assert cached >= border if border else cached == 0


def test_the_same_prompt_again_and_its_answer_continued(
    pair: tuple[LlamaBackend, LlamaBackend], grid: int, tmp_path: Path
) -> None:
    one, other = (Worker(backend, grid, tmp_path) for backend in pair)
    prompt = text_tokens(pair[0], 620)
    one.admit("a", prompt)
    answer, _ = one.run()["a"]
    other.admit("b", prompt)
    again, cached = other.run()["b"]
    assert again == answer
    assert cached >= (512 if grid else 616)
    longer = [*prompt, *answer, *text_tokens(pair[0], 40)[10:]]
    other.admit("c", longer)
    tokens, cached = other.run()["c"]
    assert tokens == cold(pair[0], grid, longer)
    assert cached >= (512 if grid else 616)


def test_three_at_once_that_begin_alike(
    pair: tuple[LlamaBackend, LlamaBackend], grid: int, tmp_path: Path
) -> None:
    worker = Worker(pair[0], grid, tmp_path)
    base, rest = text_tokens(pair[0], 600), text_tokens(pair[0], 80)
    prompts = {str(i): base + rest[i * 20 : i * 20 + 20 + i] for i in range(3)}
    for job_id, prompt in prompts.items():
        worker.admit(job_id, prompt)
    told = worker.run()
    for job_id, prompt in prompts.items():
        assert told[job_id][0] == cold(pair[0], grid, prompt)
    assert sorted(cached for _, cached in told.values())[1:] == [512 if grid else 600] * 2


@pytest.mark.parametrize("num_steps", [3, 16])
def test_a_parked_job_goes_on_in_another_worker(
    pair: tuple[LlamaBackend, LlamaBackend], grid: int, tmp_path: Path, num_steps: int
) -> None:
    """In the middle of its prompt, and of its answer."""
    one, other = (Worker(backend, grid, tmp_path) for backend in pair)
    prompt = text_tokens(pair[0], 560)
    one.admit("a", prompt)
    while not one.engine.scheduler.sequences[0].num_computed:
        one.engine.step()
    known = one.run(until=num_steps).get("a", ([], 0))[0]
    [sequence] = one.engine.scheduler.sequences
    one.engine.park(sequence)
    other.admit("a", prompt, known)
    assert other.engine.scheduler.sequences[0].num_computed > 0
    assert known + other.run()["a"][0] == cold(pair[0], grid, prompt)
