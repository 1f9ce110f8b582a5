"""Which of llama.cpp's kernels a format runs on here, as far as it says so. Pure."""

from collections.abc import Mapping


def kernels_of(buffers_mb: Mapping[str, float], features: str) -> str:
    """``buffers_mb``: where the weights were put; ``features``: what llama.cpp says of its build. Weights that
    are in a buffer of their own (repacked, AMX) are multiplied many rows at once; those in the plain one row
    by row, but float types that tinyBLAS (LLAMAFILE) knows are tiled."""
    whole = sum(buffers_mb.values())
    told = []
    for name, mb in buffers_mb.items():
        share = f"{mb / whole:.0%}" if whole else "?"
        if "REPACK" in name:
            told.append(f"repacked {share}")
        elif "AMX" in name:
            told.append(f"AMX {share}")
    if not told:
        return "plain, tiled by tinyBLAS" if "LLAMAFILE = 1" in features else "plain"
    return ", ".join(told) + ", the rest plain"
