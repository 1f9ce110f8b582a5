"""Which weight formats are tried, and how large their files are."""

import shutil
from pathlib import Path
from typing import Literal

from shared.converted import converted_path
from shared.gguf_header import ModelFacts
from shared.weight_formats import AS_IS, WEIGHT_FORMATS, estimated_bytes, format_of, is_upcast

FormatChoice = Literal["upcast", "any", "as-is"]

#: Four times the size of F16 for no speed.
_NEVER = frozenset({"f32"})
#: Lossy ones that are worth a look: what llama.cpp repacks, and the usual ones of each size.
_LOSSY = ("q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0", "iq4_nl")
#: Of the disk's room, what copies may take.
_DISK_SHARE = 0.8


def wanted_formats(facts: ModelFacts, choice: FormatChoice) -> list[str]:
    """The model's own first, then those of the same quality; no format twice."""
    if choice == "as-is" or facts.file_type is None:
        return [AS_IS]
    own = format_of(facts.file_type)
    upcasts = [name for name in ("bf16", "f16") if is_upcast(facts.file_type, name)]
    lossy = _LOSSY if choice == "any" else ()
    names = [name for name in (*upcasts, *lossy) if name in WEIGHT_FORMATS and name not in _NEVER]
    return [AS_IS, *(name for name in names if own is None or name != own.name)]


def size_bytes(facts: ModelFacts, weight_format: str) -> int:
    """Of the file as it is, or as it is going to be."""
    if weight_format == AS_IS:
        return facts.size_bytes
    return estimated_bytes(
        weight_format,
        num_parameters=facts.num_parameters,
        table_parameters=facts.table_parameters,
        header_bytes=facts.header_bytes,
    )


def fits_disk(facts: ModelFacts, source: Path, weight_format: str, model_dir: Path) -> bool:
    if weight_format == AS_IS or converted_path(source, weight_format, model_dir).is_file():
        return True
    # It is made with the first copy.
    folder = next(p for p in (model_dir, *model_dir.absolute().parents) if p.is_dir())
    return size_bytes(facts, weight_format) <= shutil.disk_usage(folder).free * _DISK_SHARE
