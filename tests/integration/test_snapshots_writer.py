"""The writing thread, claims among the workers of one process, and what a fingerprint is made of."""

import os
import stat
import threading
from pathlib import Path

import pytest

from shared.content_hash import content_hash
from worker.snapshots.claims import Claims
from worker.snapshots.fingerprint import fingerprint
from worker.snapshots.limits import max_snapshot_bytes
from worker.snapshots.store import Store
from worker.snapshots.writer import Writer

MIB = 2**20
FINGERPRINT = "f" * 32


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "s", fingerprint=FINGERPRINT, max_bytes=64 * MIB, ttl_s=600)


def block(store: Store, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Nothing is written until it is set."""
    free, put = threading.Event(), store.put

    def wait_and_put(*args: object, **kwargs: object) -> bool:
        assert free.wait(30)
        return put(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "put", wait_and_put)
    return free


def test_what_is_submitted_can_be_found_after_a_flush(store: Store) -> None:
    writer = Writer(store, 4 * MIB)
    tokens, done = [3] * 20, threading.Event()
    buffer = writer.buffer(1000)
    assert buffer is not None
    buffer[:1000] = b"\x07" * 1000
    writer.submit(buffer, 1000, scope="a", tokens=tokens, first_position=0, on_done=done.set)
    tokens += [9] * 20  # the sequence goes on meanwhile
    assert writer.flush(10)
    assert done.is_set()
    [match] = store.match([3] * 20, ["a"])
    assert list(match.entry.tokens) == [3] * 20
    state = store.open(match.entry)
    assert state is not None
    with state:
        assert bytes(state.buffer) == b"\x07" * 1000
    writer.close()


def test_tokens_are_those_of_the_moment_of_the_copy(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = block(store, monkeypatch)
    writer = Writer(store, 4 * MIB)
    buffer, tokens = writer.buffer(10), [3] * 20
    assert buffer is not None
    writer.submit(buffer, 10, scope="a", tokens=tokens, first_position=0)
    tokens.append(4)
    free.set()
    assert writer.flush(10)
    assert [len(entry.tokens) for entry in store.entries()] in ([], [20])
    assert [len(m.entry.tokens) for m in store.match([3] * 20, ["a"])] == [20]
    writer.close()


def test_no_more_is_copied_than_the_writer_may_hold(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = block(store, monkeypatch)
    writer = Writer(store, 2 * MIB)
    first, second = writer.buffer(MIB), writer.buffer(MIB)
    assert first is not None
    assert second is not None
    assert writer.buffer(10) is None
    for number, buffer in enumerate((first, second)):
        writer.submit(buffer, 10, scope="a", tokens=[number] * 20, first_position=0)
    assert not writer.flush(0.05)
    assert writer.buffer(10) is None
    free.set()
    assert writer.flush(10)
    again = writer.buffer(MIB)
    assert again is not None
    assert again.obj in (first.obj, second.obj)
    writer.close()


def test_a_failing_write_does_not_end_the_thread(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(store, 4 * MIB)
    done = []
    with monkeypatch.context() as patched:
        patched.setattr(store, "put", lambda *args, **kwargs: 1 / 0)
        buffer = writer.buffer(10)
        assert buffer is not None
        writer.submit(
            buffer, 10, scope="a", tokens=[1] * 20, first_position=0, on_done=lambda: done.append(1)
        )
        assert writer.flush(10)
    buffer = writer.buffer(10)
    assert buffer is not None
    writer.submit(buffer, 10, scope="a", tokens=[1] * 20, first_position=0)
    writer.close()
    assert done == [1]
    assert store.match([1] * 20, ["a"])


def test_claims_of_others_are_found_until_they_are_released(tmp_path: Path) -> None:
    mine, theirs = (Claims(tmp_path, fingerprint=FINGERPRINT) for _ in range(2))
    short = theirs.claim("a", [1] * 20, 0)
    long = theirs.claim("a", [1] * 50, 16)
    assert mine.claim("a", [1] * 60, 0) is not None
    found = mine.match([1] * 40, ["b", "a"], start=0)
    assert [(m.num_common, m.num_tokens, m.start) for m in found] == [(40, 50, 16), (20, 20, 0)]
    assert [m.num_common for m in mine.match([1] * 40, ["a"], start=20)] == [40]
    assert mine.match([1] * 40, ["b"], start=0) == []
    assert Claims(tmp_path, fingerprint="e" * 32).match([1] * 40, ["a"], start=0) == []
    long.release()
    long.release()
    assert not mine.is_live(found[0].name)
    assert mine.is_live(found[1].name)
    short.release()
    assert mine.match([1] * 40, ["a"], start=0) == []


def test_a_claim_that_cannot_be_made_does_nothing(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "c", fingerprint=FINGERPRINT)
    (tmp_path / "c").rmdir()
    claims.claim("a", [1] * 20, 0).release()
    assert claims.match([1] * 20, ["a"], start=0) == []


def test_claims_of_the_dead_are_cleared_even_if_nobody_asks_for_them(tmp_path: Path) -> None:
    claims = Claims(tmp_path, fingerprint=FINGERPRINT)
    claim = claims.claim("a", [1] * 20, 0)
    left = tmp_path / "ffff.0123.dead.1"
    left.write_bytes(b"left")
    Claims(tmp_path, fingerprint=FINGERPRINT)
    assert not left.exists()
    assert len(list(tmp_path.iterdir())) == 1
    claim.release()


def test_a_model_is_hashed_once_and_again_when_it_changes(tmp_path: Path) -> None:
    model, notes = tmp_path / "model.gguf", tmp_path / "hashes"
    model.write_bytes(b"weights")
    first = content_hash(model, notes)
    [note] = notes.iterdir()
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    note.write_text("0" * 64)
    assert content_hash(model, notes) == "0" * 64
    note.write_text("damaged")
    assert content_hash(model, notes) == first
    model.write_bytes(b"WEIGHTS")
    os.utime(model, ns=(1, 1))
    assert content_hash(model, notes) != first


def test_a_fingerprint_depends_on_each_part_and_not_on_their_order() -> None:
    assert fingerprint({"a": 1, "b": "x"}) == fingerprint({"b": "x", "a": 1})
    others = [{"a": 2, "b": "x"}, {"a": 1, "b": "y"}, {"a": 1}, {"a": "1", "b": "x"}]
    assert len({fingerprint({"a": 1, "b": "x"}), *map(fingerprint, others)}) == 5  # type: ignore[arg-type]
    assert len(fingerprint({})) == 32


def test_no_limit_is_beyond_the_filesystem_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    status = os.statvfs(tmp_path)
    most = status.f_blocks * status.f_frsize
    assert max_snapshot_bytes(MIB, tmp_path) == MIB
    assert caplog.records == []
    assert max_snapshot_bytes(2 * most, tmp_path) == int(0.9 * most)
    assert "MINI_VLLM_CACHE_MAX_BYTES" in caplog.text
    assert 0 < max_snapshot_bytes(0, tmp_path) <= int(0.9 * most)
