from hypothesis import given
from hypothesis import strategies as st

from worker.chunking import may_take, next_border, next_chunk


@given(st.integers(0, 500), st.integers(1, 2000), st.integers(2, 56))
def test_chunks_cover_the_way_and_never_have_one_row(
    begin: int, length: int, max_rows: int
) -> None:
    position, sizes = begin, []
    while position < begin + length:
        sizes.append(next_chunk(position, begin + length, max_rows))
        position += sizes[-1]
    assert position == begin + length
    if length > 1:
        assert min(sizes) >= 2
        assert max(sizes) <= max(max_rows, 3)


def test_a_border_comes_after_its_position() -> None:
    assert [next_border(position, 16) for position in (0, 15, 16, 17)] == [16, 16, 32, 32]


def test_a_way_is_cut_evenly() -> None:
    assert next_chunk(0, 64, 56) == 32
    assert next_chunk(100, 156, 56) == 56
    assert next_chunk(0, 113, 56) == 38


@given(st.integers(1, 60), st.integers(1, 60))
def test_what_may_be_taken_leaves_no_lone_row(rest: int, size: int) -> None:
    if may_take(rest, size):
        assert rest - size != 1
        assert size >= 2 or rest == 1
    else:
        assert size > rest or size == 1 or rest - size == 1
