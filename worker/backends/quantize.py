"""``python -m worker.backends.quantize SOURCE TARGET FILE_TYPE THREADS``: one model file in another format.

A process of its own, so that what runs out of memory or meets an instruction that the CPU lacks takes
nobody along. What it chooses is what `llama-quantize` chooses when it is given no more than a format: the
output matrix in Q6_K (Q8_0 where its rows are no multiple of 256), norms in F32. TARGET is written anew.
"""

import ctypes
import sys

import llama_cpp as llama

from worker.backends import library


def quantize(source: str, target: str, file_type: int, threads: int) -> str:
    """What went wrong; empty if nothing did."""
    library.start()
    params = llama.llama_model_quantize_default_params()
    params.ftype = file_type
    params.nthread = threads
    params.allow_requantize = True
    code = llama.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(params))
    return library.first_error(f"llama.cpp ended with code {code}") if code else ""


def main(arguments: list[str]) -> int:
    source, target, file_type, threads = arguments
    problem = quantize(source, target, int(file_type), int(threads))
    if problem:
        sys.stderr.write(problem + "\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
