"""The formats that weights can be kept in: their names, llama.cpp's numbers for them, their size. Pure.

Which of them a machine should run is measured (`mini-vllm tune`), not decided here.
"""

from dataclasses import dataclass

from shared.errors import SetupError

#: In place of a format's name: the model's file as it came.
AS_IS = "as-is"
#: llama.h: a flag beside the number, where the file does not say it.
_FTYPE_GUESSED = 1024
#: The output matrix of a quantized file, which llama.cpp keeps in Q6_K or Q8_0.
_TABLE_BITS = 8.5


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """``file_type`` is llama.h's ``enum llama_ftype``; ``bits_per_weight`` that of its usual blocks: single
    tensors have more (norms, the output matrix, rows that are no multiple of a block)."""

    name: str
    file_type: int
    bits_per_weight: float


_ALL = (
    WeightFormat("f32", 0, 32),
    WeightFormat("f16", 1, 16),
    WeightFormat("bf16", 32, 16),
    WeightFormat("q8_0", 7, 8.5),
    WeightFormat("q6_k", 18, 6.57),
    WeightFormat("q5_k_m", 17, 5.69),
    WeightFormat("q5_k_s", 16, 5.54),
    WeightFormat("q5_1", 9, 6),
    WeightFormat("q5_0", 8, 5.5),
    WeightFormat("q4_k_m", 15, 4.85),
    WeightFormat("q4_k_s", 14, 4.58),
    WeightFormat("q4_1", 3, 5),
    WeightFormat("q4_0", 2, 4.5),
    WeightFormat("iq4_nl", 25, 4.5),
    WeightFormat("iq4_xs", 30, 4.25),
    WeightFormat("q3_k_m", 12, 3.91),
    WeightFormat("q2_k", 10, 3),
)

WEIGHT_FORMATS: dict[str, WeightFormat] = {entry.name: entry for entry in _ALL}

_F32, _F16, _BF16 = (WEIGHT_FORMATS[name].file_type for name in ("f32", "f16", "bf16"))
_FLOATS = frozenset({_F32, _F16, _BF16})


def known_format(name: str, field: str = "weight_format") -> WeightFormat:
    """In any case of letters. Raises ``SetupError`` that names the field and lists the known."""
    try:
        return WEIGHT_FORMATS[name.lower()]
    except KeyError:
        raise SetupError(
            f"{field}: there is no weight format {name[:40]!r}; known: {', '.join(WEIGHT_FORMATS)}",
            field=field,
        ) from None


def plain_type(file_type: int) -> int:
    """Without the flag that says that it was guessed."""
    return file_type & ~_FTYPE_GUESSED


def format_of(file_type: int | None) -> WeightFormat | None:
    """None for a type that we have no name for."""
    if file_type is None:
        return None
    return next((entry for entry in _ALL if entry.file_type == plain_type(file_type)), None)


def is_float(file_type: int) -> bool:
    return plain_type(file_type) in _FLOATS


def is_upcast(source_file_type: int, to: str) -> bool:
    """Whether quality is kept. What comes out of 2 to 8 bits loses a rounding at most as F16 or BF16, far
    below what quantizing lost before; F16 has digits that BF16 has not, BF16 a range that F16 has not."""
    source, target = plain_type(source_file_type), known_format(to).file_type
    if target in (source, _F32):
        return True
    return target in (_F16, _BF16) and source not in _FLOATS


def loss_note(source_file_type: int, to: str) -> str:
    """What a conversion does to the quality, for people."""
    if is_upcast(source_file_type, to):
        return "upcast, quality kept"
    if is_float(source_file_type) or known_format(to).file_type in _FLOATS:
        return "lossy"
    return "lossy, from a source that is lossy already: quantize a float file where there is one"


def estimated_bytes(
    to: str, *, num_parameters: int, table_parameters: int, header_bytes: int
) -> int:
    """Of a file to be made, roughly. ``table_parameters`` are those of output matrix and embeddings."""
    bits = known_format(to).bits_per_weight
    table_bits = max(bits, _TABLE_BITS)
    plain = num_parameters - table_parameters
    return round((plain * bits + table_parameters * table_bits) / 8) + header_bytes
