from worker.snapshots.chain import pack_tokens
from worker.snapshots.folder import StoredFile
from worker.snapshots.names import file_name, parse_name
from worker.snapshots.room import choose_evicted

OLD, MIDDLE, NEW = (StoredFile(name, 10, used_s) for name, used_s in (("o", 1), ("m", 2), ("n", 3)))


def test_the_least_recently_used_go_and_no_more_than_it_takes() -> None:
    assert choose_evicted([NEW, OLD, MIDDLE], 11) == [OLD, MIDDLE]
    assert choose_evicted([NEW, OLD, MIDDLE], 10) == [OLD]
    assert choose_evicted([NEW, OLD], 0) == []
    assert choose_evicted([NEW, OLD], -5) == []


def test_a_name_says_neither_key_nor_token() -> None:
    name = file_name("ab" * 16, "secret-key", pack_tokens([1234567, 7654321]))
    assert not any(word in name for word in ("secret", "1234567", "7654321"))
    parts = parse_name(name)
    assert parts is not None
    assert (parts.fingerprint_part, parts.num_tokens) == ("ab" * 8, 2)


def test_what_is_no_snapshots_name_is_not_taken_for_one() -> None:
    for name in ("lock", ".writing-1", "../x.kv", "a.b.c.1.kv", ""):
        assert parse_name(name) is None
