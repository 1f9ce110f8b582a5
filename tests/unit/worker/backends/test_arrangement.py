import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.backends.arrangement import NEVER, arrange_chunks, arrange_rows
from worker.backends.base import Row, SlotChunk


def test_a_lone_row_is_padded_from_its_position_on() -> None:
    assert arrange_rows([Row(0, 7, 254)], pads_from=255).rows == [(0, 7, 254, True)]
    padded = arrange_rows([Row(0, 7, 255)], pads_from=255)
    assert padded.rows == [(0, 7, 255, True), (0, 7, 256, True)]
    assert (padded.row_of, padded.pads) == ({0: 0}, [(0, 256)])


def test_a_hole_makes_lone_rows() -> None:
    rows = [Row(slot, 7, 40) for slot in (0, 1, 3)]
    arrangement = arrange_rows(rows, pads_from=0)
    assert arrangement.pads == [(3, 41)]
    assert arrangement.row_of == {0: 0, 1: 1, 3: 2}
    assert arrange_rows(rows, pads_from=NEVER).pads == []


@given(st.sets(st.integers(0, 12), min_size=1), st.sampled_from([0, 255, NEVER]))
def test_no_stretch_of_rows_that_are_to_be_padded_has_one(slots: set[int], pads_from: int) -> None:
    rows = [Row(slot, 7, 300) for slot in sorted(slots)]
    arrangement = arrange_rows(rows, pads_from=pads_from)
    computed = [slot for slot, *_ in arrangement.rows]
    assert sorted(set(computed)) == sorted(slots)
    for slot in slots:
        assert arrangement.rows[arrangement.row_of[slot]] == (slot, 7, 300, True)
        is_lone = not {slot - 1, slot + 1} & slots
        assert computed.count(slot) == (2 if is_lone and pads_from != NEVER else 1)


@pytest.mark.parametrize(
    ("pads_from", "outputs"), [(0, [False, True, True]), (255, [False, False, True])]
)
def test_a_float_model_gets_two_rows_of_outputs(pads_from: int, outputs: list[bool]) -> None:
    arrangement = arrange_chunks([SlotChunk(2, [5, 6, 7], 10)], pads_from=pads_from)
    assert [row[3] for row in arrangement.rows] == outputs
    assert arrangement.row_of == {2: 2}


def test_a_chunk_that_draws_nothing_has_no_outputs() -> None:
    chunks = [SlotChunk(0, [5, 6], 10, has_output=False), SlotChunk(1, [7, 8], 3)]
    arrangement = arrange_chunks(chunks, pads_from=0)
    assert arrangement.rows == [
        (0, 5, 10, False),
        (0, 6, 11, False),
        (1, 7, 3, True),
        (1, 8, 4, True),
    ]
    assert arrangement.row_of == {1: 3}


def test_a_chunk_of_one_token_is_padded_if_that_can_be() -> None:
    chunk = SlotChunk(0, [5], 10)
    assert arrange_chunks([chunk], pads_from=NEVER).rows == [(0, 5, 10, True), (0, 5, 11, False)]
    assert arrange_chunks([chunk], pads_from=0).rows == [(0, 5, 10, True), (0, 5, 11, True)]
    assert arrange_chunks([chunk], pads_from=NEVER).pads == [(0, 11)]
    assert arrange_chunks([chunk], pads_from=0, can_pad=False).pads == []
