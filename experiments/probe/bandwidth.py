"""``python -m experiments.probe.bandwidth CORES``: how fast these cores read memory, and multiply.

Each core reads a block of its own that no cache holds, with BLAS's dot product of it with itself: the least
work per byte that numpy offers. The best of several passes counts: it is a ceiling that is looked for.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

_BLOCK_BYTES = 256 << 20
_MEMORY_SHARE = 8
#: A machine that others use, too, shows its best now and then only.
_READ_PASSES = 40
_MULTIPLY_PASSES = 6
_MATRIX_SIZE = 1536


def main(arguments: list[str]) -> int:
    cores = [int(core) for core in arguments[0].split(",")]
    os.sched_setaffinity(0, cores)
    # Read by BLAS when it is loaded: the threads are ours.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    import numpy as np

    from shared.cores import memory_available_bytes

    block_bytes = min(_BLOCK_BYTES, memory_available_bytes() // _MEMORY_SHARE // len(cores))
    blocks = [np.ones(block_bytes // 4, dtype=np.float32) for _ in cores]
    matrices = [np.ones((_MATRIX_SIZE, _MATRIX_SIZE), dtype=np.float32) for _ in cores]
    with ThreadPoolExecutor(len(cores)) as pool:
        gate = threading.Barrier(len(cores))

        def read(number: int) -> None:
            gate.wait()
            np.dot(blocks[number], blocks[number])

        def multiply(number: int) -> None:
            gate.wait()
            np.matmul(matrices[number], matrices[number])

        def best_s(work: Callable[[int], None], passes: int) -> float:
            times = []
            for _ in range(passes):
                began_s = perf_counter()
                list(pool.map(work, range(len(cores))))
                times.append(perf_counter() - began_s)
            return min(times)

        read_s, multiply_s = best_s(read, _READ_PASSES), best_s(multiply, _MULTIPLY_PASSES)
    found = {
        "threads": len(cores),
        "read_gb_per_s": round(len(cores) * block_bytes / read_s / 1e9, 2),
        "f32_gflop_per_s": round(len(cores) * 2 * _MATRIX_SIZE**3 / multiply_s / 1e9, 1),
    }
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
