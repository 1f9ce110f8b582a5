"""The engine with a shelf of its own, and several engines that share a host directory."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.protocol import EndEvent, TokenEvent
from tests.factories import make_args, make_engine, make_times
from worker.backends.scripted import ScriptedBackend
from worker.snapshots.claims import Claims
from worker.snapshots.shelf import Shelf
from worker.snapshots.store import Store
from worker.snapshots.writer import Writer

SHARED = "You are a terse assistant that answers in one line. " * 2
MIB = 2**20


def make_shelf(path: Path, max_bytes: int = 64 * MIB, fingerprint: str = "f" * 32) -> Shelf:
    store = Store(path / "snapshots", fingerprint=fingerprint, max_bytes=max_bytes, ttl_s=600)
    return Shelf(store, Claims(path / "claims", fingerprint=fingerprint), Writer(store, 8 * MIB))


class Worker:
    def __init__(self, path: Path, **options: object) -> None:
        self.shelf = make_shelf(path)
        self.backend = ScriptedBackend(window_tokens=int(str(options.pop("window", 0))))
        self.engine, self.clock = make_engine(self.backend, shelf=self.shelf, **options)  # type: ignore[arg-type]
        self.texts: dict[str, str] = {}
        self.ends: dict[str, EndEvent] = {}

    def admit(self, job_id: str, prompt: str = SHARED, **fields: object) -> None:
        known = fields.pop("known", None)
        owner = str(fields.pop("owner", ""))
        warm = fields.pop("warm", None)
        args = make_args(prompt, **({"max_tokens": 4} | fields))  # type: ignore[arg-type]
        args = args.model_copy(update={"warm": warm})
        self.engine.admit(job_id, 1, args, make_times(), owner=owner, known=known)  # type: ignore[arg-type]

    def step(self) -> None:
        for sequence, event in self.engine.step():
            if isinstance(event, TokenEvent):
                self.texts[sequence.job_id] = self.texts.get(sequence.job_id, "") + event.text
            elif isinstance(event, EndEvent):
                self.ends[sequence.job_id] = event
        self.engine.scheduler.check_integrity()

    def run(self) -> None:
        while self.engine.num_active:
            self.step()
        assert self.shelf.writer.flush(10)

    def cached(self, job_id: str) -> int:
        return self.ends[job_id].usage.cached_tokens


def test_another_worker_starts_from_what_one_has_computed(tmp_path: Path) -> None:
    one, other = Worker(tmp_path), Worker(tmp_path)
    one.admit("a", SHARED + "first")
    one.run()
    other.admit("b", SHARED + "second")
    other.run()
    assert other.cached("b") == len(SHARED)
    alone = Worker(tmp_path / "alone", has_cache=False)
    alone.admit("b", SHARED + "second")
    alone.run()
    assert other.texts == alone.texts


def test_another_worker_waits_for_what_one_is_computing(tmp_path: Path) -> None:
    one, other = Worker(tmp_path), Worker(tmp_path)
    one.admit("a", SHARED + "first")
    other.admit("b", SHARED + "second")
    assert other.engine.is_waiting
    other.step()
    assert other.engine.is_waiting
    one.run()
    other.clock.now_s += 0.1
    other.run()
    assert other.cached("b") == len(SHARED)


def test_it_goes_on_by_itself_when_the_one_it_waits_for_is_gone(tmp_path: Path) -> None:
    one, other = Worker(tmp_path), Worker(tmp_path)
    one.admit("a", SHARED + "first")
    other.admit("b", SHARED + "second")
    one.engine.cancel("a")
    one.run()
    other.clock.now_s += 0.1
    other.run()
    assert other.cached("b") == 0
    assert other.ends["b"].usage.completion_tokens == 4


def test_it_goes_on_by_itself_when_the_one_it_waits_for_stands_still(tmp_path: Path) -> None:
    one, other = Worker(tmp_path), Worker(tmp_path)
    one.admit("a", SHARED + "first")
    other.admit("b", SHARED + "second")
    other.clock.now_s += 60
    other.run()
    assert other.ends["b"].usage.completion_tokens == 4


def test_the_next_turn_of_a_chat_computes_only_what_is_new(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    turns = [{"role": "user", "content": "Tell me something about rivers, please."}]
    worker.admit("a", prompt=None, raw=False, messages=turns, max_tokens=40)  # type: ignore[arg-type]
    worker.run()
    turns.append({"role": "assistant", "content": worker.texts["a"]})
    turns.append({"role": "user", "content": "More."})
    worker.admit("b", prompt=None, raw=False, messages=turns)  # type: ignore[arg-type]
    worker.run()
    # All but the answer's last token, which was never fed.
    first = worker.ends["a"].usage
    assert worker.cached("b") == first.prompt_tokens + first.completion_tokens - 1


def test_a_parked_job_goes_on_elsewhere_without_computing_anything_again(tmp_path: Path) -> None:
    one, other = Worker(tmp_path), Worker(tmp_path)
    one.admit("a", max_tokens=30)
    while len(one.texts.get("a", "")) < 10:
        one.step()
    [sequence] = one.engine.scheduler.sequences
    one.engine.park(sequence)
    other.admit("a", max_tokens=30, known=list(one.texts["a"].encode()))
    other.run()
    assert [call for call in other.backend.calls if call.name == "prefill"] == []
    alone = Worker(tmp_path / "alone", has_cache=False)
    alone.admit("a", max_tokens=30)
    alone.run()
    assert one.texts["a"] + other.texts["a"] == alone.texts["a"]
    assert other.shelf.writer.flush(10)
    other.shelf.store.refresh()
    own = [entry for entry in other.shelf.store.entries() if entry.scope == "job:a"]
    assert own == []


def test_a_checkpoint_lets_a_killed_jobs_next_attempt_go_on_from_it(tmp_path: Path) -> None:
    one, other = Worker(tmp_path, checkpoint_s=1e-9), Worker(tmp_path)
    one.engine._pace.note(10, 10.0)
    one.admit("a", max_tokens=60)
    while len(one.texts.get("a", "")) < 20:
        one.step()
        assert one.shelf.writer.flush(10)
    other.admit("a", max_tokens=60, known=list(one.texts["a"].encode()))
    assert other.engine.scheduler.sequences[0].num_computed >= len(SHARED) + 15
    other.run()
    alone = Worker(tmp_path / "alone", has_cache=False)
    alone.admit("a", max_tokens=60)
    alone.run()
    assert one.texts["a"] + other.texts["a"] == alone.texts["a"]


def test_what_one_leaves_for_all_is_not_kept_again_for_each_that_follows(tmp_path: Path) -> None:
    worker = Worker(tmp_path, checkpoint_s=50)
    worker.engine._pace.note(10, 10.0)
    for job_id in "abc":
        worker.admit(job_id, SHARED + job_id * 5, max_tokens=20)
    owners = set()
    while worker.engine.num_active:
        worker.step()
        sequences = worker.engine.scheduler.sequences
        owners |= {s.job_id for s in sequences if s.reuse.has_own_snapshot}
    assert worker.cached("b") == worker.cached("c") == len(SHARED)
    assert owners == {"a"}, "only the first had computed what would take long to compute again"


def test_keys_share_nothing_but_what_was_warmed_for_all(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    worker.admit("a", owner="one")
    worker.run()
    worker.admit("b", owner="other")
    worker.run()
    assert worker.cached("b") == 0
    worker.admit("w", "W" * 40, owner="admin", warm="public", max_tokens=1)
    worker.run()
    worker.admit("c", "W" * 40 + "and more", owner="one")
    worker.run()
    assert worker.cached("c") == 40


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 1), st.integers(20, 90), st.integers(0, 20), st.booleans()),
        min_size=2,
        max_size=7,
    ),
    window=st.sampled_from([0, 24]),
    grid=st.sampled_from([0, 16]),
)
def test_whatever_is_stored_the_texts_are_those_of_a_cold_run(
    tmp_path_factory: object, jobs: list[tuple[int, int, int, bool]], window: int, grid: int
) -> None:
    path = tmp_path_factory.mktemp("host")  # type: ignore[attr-defined]
    texts = ["".join(chr(97 + (i * 7 + i // (k + 2)) % 26) for i in range(90)) for k in range(2)]
    pair = [Worker(path, window=window, grid_tokens=grid, chunk_tokens=8) for _ in range(2)]
    cold = Worker(path / "cold", has_cache=False, window=window, grid_tokens=grid, chunk_tokens=8)
    for i, (which, length, rest, on_second) in enumerate(jobs):
        prompt = texts[which][:length] + "xyz"[i % 3] * rest
        worker = pair[on_second]
        worker.admit(str(i), prompt, max_tokens=6)
        worker.run()
        cold.admit(str(i), prompt, max_tokens=6)
        cold.run()
    assert pair[0].texts | pair[1].texts == cold.texts
    for worker in (*pair, cold):
        worker.shelf.close()
