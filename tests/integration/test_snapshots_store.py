"""The store on a real directory: what is found, kept, evicted and refused."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from worker.snapshots.folder import TemporaryFile
from worker.snapshots.store import Store

KIB = 1024
FINGERPRINT = "0123456789abcdef" * 2
STATE = bytes(range(256)) * 16


class Clock:
    """One for all stores."""

    now_s = 1_000_000.0

    def __call__(self) -> float:
        Clock.now_s += 1
        return Clock.now_s


def make_store(
    path: Path, max_bytes: int = 1024 * KIB, ttl_s: float = 1e9, **options: str
) -> Store:
    fingerprint = options.get("fingerprint", FINGERPRINT)
    clock = Clock()
    return Store(path / "s", fingerprint=fingerprint, max_bytes=max_bytes, ttl_s=ttl_s, clock=clock)


def tokens(number: int, length: int = 20) -> list[int]:
    return [number] * length


def put(
    store: Store,
    number: int,
    state: bytes = STATE,
    *,
    length: int = 20,
    reusable: int | None = None,
    replaces_shorter: bool = False,
) -> bool:
    return store.put(
        "a",
        tokens(number, length),
        memoryview(state),
        first_position=0,
        reusable=reusable,
        replaces_shorter=replaces_shorter,
    )


def has(store: Store, number: int) -> bool:
    return bool(store.match(tokens(number), ["a"]))


def files_of(path: Path) -> list[Path]:
    return sorted((path / "s").glob("*.kv"))


def test_another_store_finds_and_reads_what_one_has_put(tmp_path: Path) -> None:
    one, other = make_store(tmp_path), make_store(tmp_path)
    assert not other.match(tokens(1), ["a"])
    assert put(one, 1)
    [match] = other.match(tokens(1, 18), ["b", "a"])
    assert match.num_common == 18
    state = other.open(match.entry)
    assert state is not None
    with state:
        assert bytes(state.buffer) == STATE
        state.buffer[0] = 77
    again = one.open(match.entry)
    assert again is not None
    with again:
        assert again.buffer[0] == STATE[0]
    assert (other.num_files, other.total_bytes) == (1, 4096 + len(STATE))


def test_only_this_user_can_look(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir(mode=0o755)
    put(make_store(tmp_path), 1)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700
    for path in (tmp_path / "s").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's folder")
def test_another_users_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    os.chown(tmp_path / "s", 12345, 12345)
    with pytest.raises(PermissionError, match="another user"):
        make_store(tmp_path)


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    store = make_store(tmp_path, max_bytes=3 * 8 * KIB)
    for number in (1, 2, 3):
        assert put(store, number)
    [match] = store.match(tokens(1), ["a"])
    state = store.open(match.entry)
    assert state is not None
    state.close()
    assert put(store, 4)
    assert [has(store, number) for number in (1, 2, 3, 4)] == [True, False, True, True]
    assert store.figures.num_evicted == 1


def test_the_same_again_is_only_touched(tmp_path: Path) -> None:
    store = make_store(tmp_path, max_bytes=2 * 8 * KIB)
    put(store, 1)
    put(store, 2)
    assert put(store, 1)
    assert put(store, 3)
    assert store.figures.num_written == 3
    assert [has(store, number) for number in (1, 2, 3)] == [True, False, True]


def test_the_same_tokens_with_more_to_reuse_take_the_place_of_those_with_less(
    tmp_path: Path,
) -> None:
    one, other = make_store(tmp_path), make_store(tmp_path)
    assert put(one, 1, reusable=16)
    [old] = other.match(tokens(1), ["a"])
    assert old.num_common == 16
    assert put(one, 1, STATE[::-1])
    assert other.open(old.entry) is None
    [new] = other.match(tokens(1), ["a"])
    assert new.num_common == 20
    assert put(one, 1, reusable=16)
    assert one.match(tokens(1), ["a"])[0].num_common == 20


def test_an_index_follows_a_file_that_took_another_ones_place_unseen(tmp_path: Path) -> None:
    one, other = make_store(tmp_path), make_store(tmp_path)
    put(one, 1)
    [old] = other.match(tokens(1), ["a"])
    one.remove(old.entry.name)
    put(one, 1, reusable=17)
    assert [match.num_common for match in other.match(tokens(1), ["a"])] == [17]


def test_what_was_evicted_stays_readable_for_who_had_opened_it(tmp_path: Path) -> None:
    store = make_store(tmp_path, max_bytes=8 * KIB)
    put(store, 1)
    [match] = store.match(tokens(1), ["a"])
    state = store.open(match.entry)
    assert state is not None
    put(store, 2, STATE[::-1])
    assert store.open(match.entry) is None
    with state:
        assert bytes(state.buffer) == STATE
    assert not has(store, 1)


def test_what_can_never_fit_is_refused_and_nothing_goes_for_it(tmp_path: Path) -> None:
    store = make_store(tmp_path, max_bytes=16 * KIB)
    put(store, 1)
    assert not put(store, 2, bytes(20 * KIB))
    assert not put(store, 3, b"")
    folder = store._folder
    being_written = folder.make_temporary(12 * KIB)
    assert not put(store, 4)
    being_written.close()
    assert has(store, 1)
    assert (store.figures.num_refused, store.figures.num_evicted) == (3, 0)
    assert put(store, 4)


def test_what_a_longer_one_covers_is_removed_only_on_request(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    put(store, 1, length=20)
    put(store, 1, length=30)
    assert len(files_of(tmp_path)) == 2
    put(store, 1, length=40, replaces_shorter=True, reusable=25)
    assert [len(m.entry.tokens) for m in store.match(tokens(1, 50), ["a"])] == [30, 40]
    put(store, 1, length=50, replaces_shorter=True)
    assert [len(m.entry.tokens) for m in store.match(tokens(1, 50), ["a"])] == [50]


def test_a_scope_is_removed_with_all_its_fingerprints(tmp_path: Path) -> None:
    one, other = make_store(tmp_path), make_store(tmp_path, fingerprint="f" * 32)
    put(one, 1)
    put(other, 1)
    assert not other.match(tokens(2), ["a"])
    assert one.remove_scope("b") == 0
    assert one.remove_scope("a") == 2
    assert not has(one, 1)
    assert not has(other, 1)


def test_stores_of_other_models_are_not_read_but_counted_and_evicted(tmp_path: Path) -> None:
    one, other = make_store(tmp_path), make_store(tmp_path, 16 * KIB, fingerprint="f" * 32)
    put(one, 1)
    assert not has(other, 1)
    assert other.num_files == 1
    put(other, 2)
    put(other, 3)
    assert not has(one, 1)
    assert (has(other, 2), has(other, 3)) == (True, True)


def test_what_was_not_used_for_long_is_removed(tmp_path: Path) -> None:
    store = make_store(tmp_path, ttl_s=100)
    put(store, 1)
    put(store, 2)
    Clock.now_s += 95
    [match] = store.match(tokens(1), ["a"])
    state = store.open(match.entry)
    assert state is not None
    state.close()
    Clock.now_s += 20
    store.clean()
    assert [has(store, number) for number in (1, 2)] == [True, False]


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def cut_header(path: Path) -> None:
    os.truncate(path, 30)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def be_of_another_version(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8] += 1
    path.write_bytes(data)


def be_foreign(path: Path) -> None:
    path.write_bytes(os.urandom(9000))


def claim_much(path: Path) -> None:
    """The number of tokens that the header names is not true."""
    data = bytearray(path.read_bytes())
    data[28 + 34 : 28 + 38] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [cut, cut_header, empty, zero, grow, be_of_another_version, be_foreign, claim_much],
)
def test_what_is_not_whole_is_removed_and_never_used(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    writer, store = make_store(tmp_path), make_store(tmp_path)
    put(writer, 1)
    put(writer, 2, length=2000)
    first, second = files_of(tmp_path)
    damage(first)
    kept = store.match(tokens(1), ["a"]) + store.match(tokens(2, 2000), ["a"])
    assert [match.entry.name for match in kept] == [second.name]
    assert files_of(tmp_path) == [second]
    assert store.figures.num_torn == 1


def test_one_that_is_named_as_another_ones_content_is_removed(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    put(store, 1)
    [path] = files_of(tmp_path)
    path.rename(path.with_name(path.name.replace(".20.", ".21.")))
    assert not has(store, 1)
    assert files_of(tmp_path) == []


def test_what_cannot_be_opened_now_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(make_store(tmp_path), 1)
    store = make_store(tmp_path)

    def fail(*args: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patched:
        patched.setattr("worker.snapshots.catalogue.read_entry", fail)
        assert not has(store, 1)
    assert has(store, 1)
    assert store.figures.num_torn == 0


def test_what_changes_within_one_tick_of_the_clock_is_not_missed(tmp_path: Path) -> None:
    one, other = make_store(tmp_path), make_store(tmp_path)
    for number in range(100, 160):
        assert put(one, number)
        assert has(other, number)
        one.remove(other.match(tokens(number), ["a"])[0].entry.name)
        assert not has(other, number)


def test_a_folder_that_has_not_changed_is_not_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path)
    put(store, 1)
    old_ns = (tmp_path / "s").stat().st_mtime_ns - 10**9
    os.utime(tmp_path / "s", ns=(old_ns, old_ns))
    assert has(store, 1)
    monkeypatch.setattr(store._folder, "scan", lambda: pytest.fail("it was listed"))
    assert has(store, 1)


def test_a_full_disk_costs_old_snapshots_once_and_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path)
    put(store, 1)
    put(store, 2)
    original, failures = TemporaryFile.write, [2]

    def write(self: TemporaryFile, *parts: bytes | memoryview) -> None:
        if failures[0]:
            failures[0] -= 1
            raise OSError(errno.ENOSPC, "no space")
        original(self, *parts)

    monkeypatch.setattr(TemporaryFile, "write", write)
    assert not put(store, 3)
    assert (store.figures.num_refused, store.figures.num_evicted) == (1, 1)
    failures[0] = 1
    assert put(store, 3)
    assert store.figures.num_evicted == 2
    assert [path.name for path in (tmp_path / "s").glob(".writing*")] == []


def test_any_other_trouble_of_the_disk_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path)
    put(store, 1)

    def write(self: TemporaryFile, *parts: bytes | memoryview) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(TemporaryFile, "write", write)
    assert not put(store, 2)
    assert has(store, 1)
    assert store.figures.num_refused == 1
