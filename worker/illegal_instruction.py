"""Last words of a worker whose llama.cpp was built for another CPU: SIGILL kills it without any.

The handler is a C function of ctypes, which Python's own signals are not: those wait for the
interpreter's next instruction, and after SIGILL there is none. It takes the GIL, which llama.cpp's
callers have given up, also where the fault is in an OpenMP thread that Python does not know.
NOTE: code that keeps the GIL and waits for a thread in which the fault is would wait for ever; none
of llama.cpp's calls does.
"""

import ctypes
import os
import signal
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from threading import Lock
from time import sleep

from shared.exit_codes import EXIT_CONFIG

_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int)

_LINE = (
    "llama.cpp was built for another CPU than this one (illegal instruction{lacking}): build it here "
    "(make setup with PIP_NO_CACHE_DIR=1, or docker build), or for any CPU of a kind with "
    "--build-arg LLAMA_TARGET=x86-64-v3"
)
#: What llama.cpp calls a feature, and the kernel.
_FLAGS = {
    "SSE3": "pni",
    "SSSE3": "ssse3",
    "AVX": "avx",
    "AVX_VNNI": "avx_vnni",
    "AVX2": "avx2",
    "F16C": "f16c",
    "FMA": "fma",
    "BMI2": "bmi2",
    "AVX512": "avx512f",
    "AVX512_VBMI": "avx512vbmi",
    "AVX512_VNNI": "avx512_vnni",
    "AVX512_BF16": "avx512_bf16",
    "AMX_INT8": "amx_int8",
}

_MAX_WORDS_S = 10.0

#: The kernel calls into them, so they are never freed.
_installed: list["IllegalInstruction"] = []


class IllegalInstruction:
    """To be installed before llama.cpp is loaded. A fault while the words are said kills as ever."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._words = self._say("")
        self._turn = Lock()
        self._handler = _Handler(self._on_fault)

    def install(self) -> None:
        libc = ctypes.CDLL(None)
        # BSD's: several threads may meet the fault at once, and the second must not kill the process
        # before the first has spoken. In the thread of the handler a fault kills, since it is blocked.
        libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, _Handler], ctypes.c_void_p
        libc.signal(signal.SIGILL, self._handler)
        _installed.append(self)

    def name_features(self, is_built_with: Callable[[str], bool]) -> None:
        """What llama.cpp was built with and this CPU lacks is named from now on."""
        lacking = missing_features(is_built_with, _cpu_flags())
        self._words = self._say(f"; it has no {', '.join(lacking)}" if lacking else "")

    def _say(self, lacking: str) -> bytes:
        return f"{self._worker}: error: {_LINE.format(lacking=lacking)}\n".encode()

    def _on_fault(self, _number: int) -> None:
        if self._turn.acquire(blocking=False):
            with suppress(OSError):
                os.write(2, self._words)
            os._exit(EXIT_CONFIG)
        sleep(_MAX_WORDS_S)  # another thread speaks, and ends this one too


def missing_features(is_built_with: Callable[[str], bool], flags: Collection[str]) -> list[str]:
    """None where the kernel tells no flags. Pure."""
    lacking = [name for name, flag in _FLAGS.items() if flags and flag not in flags]
    return [name for name in lacking if is_built_with(name)]


def _cpu_flags() -> set[str]:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return set(line.partition(":")[2].split())
    return set()
