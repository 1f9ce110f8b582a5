"""Against a brute force that compares the prompt with every entry."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from worker.snapshots.chain import BLOCK_TOKENS, pack_tokens
from worker.snapshots.index import MAX_MATCHES, Entry, Index

#: Few different blocks and ends, so that prefixes are often shared.
TOKENS = st.builds(
    lambda blocks, rest: [block for block in blocks for _ in range(BLOCK_TOKENS)] + rest,
    st.lists(st.integers(0, 1), max_size=4),
    st.lists(st.integers(0, 1), max_size=BLOCK_TOKENS + 2),
)
ENTRIES = st.lists(
    st.tuples(st.sampled_from("ab"), TOKENS, st.floats(0, 1), st.booleans()), max_size=25
)


def make_entry(number: int, scope: str, tokens: list[int], reusable: int | None = None) -> Entry:
    usable = len(tokens) if reusable is None else reusable
    return Entry(f"e{number:02}", scope, pack_tokens(tokens), 0, usable, 0.0)


def compare_all(entries: list[Entry], tokens: list[int], scopes: Sequence[str]) -> list[object]:
    found = []
    for entry in entries:
        common = 0
        for mine, theirs in zip(entry.tokens[: entry.reusable], tokens, strict=False):
            if mine != theirs:
                break
            common += 1
        if entry.scope in scopes and common >= BLOCK_TOKENS:
            found.append((-common, len(entry.tokens), entry.name))
    return list(sorted(found)[:MAX_MATCHES])


@given(ENTRIES, TOKENS, st.sampled_from([["a"], ["b", "a"], ["a", "a"], ["c"], []]))
def test_it_finds_what_comparing_with_all_finds(
    stored: list[tuple[str, list[int], float, bool]], tokens: list[int], scopes: list[str]
) -> None:
    index, kept = Index(), []
    for number, (scope, own, part, _) in enumerate(stored):
        index.add(make_entry(number, scope, own, int(part * len(own))))
    for number, (scope, own, part, is_removed) in enumerate(stored):
        entry = make_entry(number, scope, own, int(part * len(own)))
        if is_removed:
            index.remove(entry.name)
        else:
            kept.append(entry)
    found = index.match(tokens, scopes)
    ranks = [(-m.num_common, len(m.entry.tokens), m.entry.name) for m in found]
    assert ranks == compare_all(kept, tokens, scopes)
    assert len(index) == len(kept)


@given(ENTRIES)
def test_nothing_is_left_of_what_is_removed(
    stored: list[tuple[str, list[int], float, bool]],
) -> None:
    index = Index()
    for number, (scope, own, _, _) in enumerate(stored):
        index.add(make_entry(number % 7, scope, own))
    for number in range(7):
        index.remove(f"e{number:02}")
    assert len(index) == 0
    assert index._listed == {}


def test_one_of_the_same_name_takes_its_place() -> None:
    index = Index()
    index.add(make_entry(0, "a", [1] * 40))
    index.add(make_entry(0, "a", [1] * 40, 16))
    assert [match.num_common for match in index.match([1] * 40, ["a"])] == [16]


def test_an_entry_covers_one_that_it_is_good_for_in_all_respects() -> None:
    short, long = make_entry(0, "a", [1] * 20), make_entry(1, "a", [1] * 30)
    assert long.covers(short)
    assert not short.covers(long)
    assert not make_entry(2, "b", [1] * 30).covers(short)
    assert not make_entry(2, "a", [1] * 30, 16).covers(short)
    late = Entry("late", "a", long.tokens, 8, 30, 0.0)  # a window that has left the beginning
    assert not late.covers(short)
