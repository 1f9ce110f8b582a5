from array import array

from hypothesis import given
from hypothesis import strategies as st

from worker.snapshots.chain import BLOCK_TOKENS, chain, num_common, pack_tokens

TOKENS = st.lists(st.integers(0, 2**31 - 1), max_size=70)


@given(TOKENS, TOKENS)
def test_digests_are_alike_for_as_many_blocks_as_are_alike(
    first: list[int], rest: list[int]
) -> None:
    other = first[: len(first) // 2] + rest
    shared = next(
        (i for i, (a, b) in enumerate(zip(first, other, strict=False)) if a != b),
        min(len(first), len(other)),
    )
    pairs = zip(chain(first), chain(other), strict=False)
    assert sum(a == b for a, b in pairs) == shared // BLOCK_TOKENS
    assert num_common(pack_tokens(first), pack_tokens(other)) == shared


@given(TOKENS)
def test_only_whole_blocks_have_a_digest(tokens: list[int]) -> None:
    assert len(chain(tokens)) == len(tokens) // BLOCK_TOKENS


def test_a_block_says_what_came_before_it() -> None:
    block = list(range(BLOCK_TOKENS))
    assert chain(block + block)[0] == chain(block)[0]
    assert chain(block + block)[1] != chain(block)[0]


def test_a_packed_list_does_not_grow_with_it() -> None:
    tokens = [1, 2]
    packed = pack_tokens(tokens)
    tokens.append(3)
    assert packed == array("i", [1, 2])
