import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.snapshots.chain import pack_tokens
from worker.snapshots.record import ALIGNMENT_BYTES, BadRecord, header_bytes, pack, unpack

FINGERPRINT = "0123456789abcdef" * 2
PACKED = pack(
    fingerprint=FINGERPRINT,
    scope="key:one",
    tokens=[5, 6, 7],
    reusable=3,
    first_position=0,
    state_bytes=99,
)


@given(
    st.text(max_size=40),
    st.lists(st.integers(0, 2**31 - 1), max_size=3000),
    st.floats(0, 1),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**50),
)
def test_a_header_comes_back_as_it_was(
    scope: str, tokens: list[int], part: float, first_position: int, state_bytes: int
) -> None:
    packed = pack(
        fingerprint=FINGERPRINT,
        scope=scope,
        tokens=tokens,
        reusable=int(part * len(tokens)),
        first_position=first_position,
        state_bytes=state_bytes,
    )
    header = unpack(packed[: header_bytes(packed[:ALIGNMENT_BYTES])])
    assert (header.fingerprint, header.scope) == (FINGERPRINT, scope)
    assert header.tokens == pack_tokens(tokens)
    assert header.reusable == int(part * len(tokens))
    assert (header.first_position, header.state_bytes) == (first_position, state_bytes)
    assert header.offset == len(packed)
    assert header.offset % ALIGNMENT_BYTES == 0


@given(st.integers(0, header_bytes(PACKED) - 1), st.integers(1, 255))
def test_one_changed_byte_is_noticed(position: int, change: int) -> None:
    damaged = bytearray(PACKED)
    damaged[position] ^= change
    with pytest.raises(BadRecord):
        unpack(bytes(damaged))


@given(st.binary(max_size=200))
def test_bytes_of_another_origin_are_refused(data: bytes) -> None:
    with pytest.raises(BadRecord):
        unpack(data)


@given(st.integers(0, header_bytes(PACKED) - 1))
def test_a_header_cut_short_is_refused(length: int) -> None:
    with pytest.raises(BadRecord):
        unpack(PACKED[:length])


def test_more_cannot_be_reusable_than_there_is() -> None:
    with pytest.raises(ValueError, match="reusable"):
        pack(
            fingerprint=FINGERPRINT,
            scope="",
            tokens=[1],
            reusable=2,
            first_position=0,
            state_bytes=1,
        )
