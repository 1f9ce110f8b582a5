import pytest

from shared.errors import SetupError
from shared.weight_formats import (
    WEIGHT_FORMATS,
    estimated_bytes,
    format_of,
    is_upcast,
    known_format,
    loss_note,
)

F32, F16, Q4_0, Q4_1, BF16 = 0, 1, 2, 3, 32


@pytest.mark.parametrize(
    ("source", "to", "expected"),
    [
        (Q4_1, "bf16", True),
        (Q4_1, "f16", True),
        (Q4_1, "f32", True),
        (Q4_1 | 1024, "bf16", True),
        (Q4_1, "q8_0", False),
        (Q4_1, "q4_1", True),
        (F16, "f16", True),
        (F16, "f32", True),
        (F16, "bf16", False),
        (F32, "bf16", False),
        (F32, "f16", False),
        (BF16, "f16", False),
        (BF16, "q4_0", False),
    ],
)
def test_an_upcast_keeps_every_weight(source: int, to: str, expected: bool) -> None:
    assert is_upcast(source, to) is expected


def test_a_lossy_copy_of_a_lossy_file_is_said_to_be_one() -> None:
    assert "lossy already" in loss_note(Q4_1, "q4_0")
    assert loss_note(F16, "q4_0") == "lossy"
    assert loss_note(F16, "bf16") == "lossy"
    assert loss_note(Q4_1, "bf16") == "upcast, quality kept"


def test_a_format_that_nobody_knows_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SetupError, match=r"^--to: .*'q9'.* bf16, q8_0"):
        known_format("q9", "--to")
    assert known_format("BF16").name == "bf16"


def test_a_file_type_has_the_name_of_its_format() -> None:
    assert all(format_of(entry.file_type) == entry for entry in WEIGHT_FORMATS.values())
    assert format_of(Q4_0 | 1024) == WEIGHT_FORMATS["q4_0"]
    assert format_of(None) is None
    assert format_of(999) is None


def test_the_estimate_counts_the_tables_of_a_quantized_file_with_more_bits() -> None:
    sizes = {"num_parameters": 1_000, "table_parameters": 200, "header_bytes": 50}
    assert estimated_bytes("f16", **sizes) == 2_050
    assert estimated_bytes("q4_0", **sizes) == round(800 * 4.5 / 8 + 200 * 8.5 / 8) + 50
