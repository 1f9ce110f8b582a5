"""Which of llama.cpp's kernels a format runs on here, as far as it says so. Pure."""

from collections.abc import Mapping

#: Of llamafile's tinyBLAS (ggml-cpu/llamafile/sgemm.cpp) on x86, where it was built in.
_TILED = frozenset({"f32", "f16", "bf16", "q8_0", "q4_0", "q5_0", "iq4_nl"})


def kernels_of(
    format_name: str, file_mb: float, buffers_mb: Mapping[str, float], features: str
) -> str:
    """``buffers_mb``: where the weights were put; ``features``: what llama.cpp says of its build. Weights in
    a buffer of their own were put into another order, in which many rows are multiplied at once."""
    told = []
    for name, mb in buffers_mb.items():
        share = f"{min(1.0, mb / file_mb):.0%}"
        if "REPACK" in name:
            told.append(f"repacked {share}")
        elif "AMX" in name:
            told.append(f"AMX {share}")
    if told:
        return ", ".join(told)
    has_tiles = format_name in _TILED and "LLAMAFILE = 1" in features
    return "tiled" if has_tiles else "row by row"
