import os
import platform
import subprocess
import sys

import pytest

from shared.exit_codes import EXIT_CONFIG
from worker.illegal_instruction import missing_features

#: Runs `ud2` from a page of its own, in the way that the argument names.
PROGRAM = """
import ctypes, mmap, sys, threading, time
from worker.illegal_instruction import IllegalInstruction

page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes([0x0F, 0x0B, 0xC3]))
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
how = sys.argv[1]
if how == "while it speaks":
    IllegalInstruction._on_fault = lambda *_: ctypes.CFUNCTYPE(None)(address)()
illegal = IllegalInstruction("w")
illegal.name_features(lambda name: name == "AVX")
illegal.install()

def busy():
    while True:
        sum(range(1000))

threading.Thread(target=busy, daemon=True).start()
if how in ("main", "while it speaks"):
    ctypes.CFUNCTYPE(None)(address)()
elif how == "holding the GIL":
    ctypes.PYFUNCTYPE(None)(address)()
elif how == "python thread":
    threading.Thread(target=ctypes.CFUNCTYPE(None)(address)).start()
else:
    libc = ctypes.CDLL(None)
    threads = [ctypes.c_ulong() for _ in range(8 if how == "many threads" else 1)]
    for thread in threads:
        libc.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(address), None)
    for thread in threads:
        libc.pthread_join(thread, None)
time.sleep(60)
"""

on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the instruction is x86's")


def run(how: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, how],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


@on_x86
@pytest.mark.parametrize(
    "how", ["main", "holding the GIL", "python thread", "foreign thread", "many threads"]
)
def test_an_illegal_instruction_is_said_in_one_line(how: str) -> None:
    done = run(how)
    assert done.returncode == EXIT_CONFIG, done.stderr
    assert done.stderr.startswith(
        "w: error: llama.cpp was built for another CPU than this one (illegal instruction"
    )
    assert "--build-arg LLAMA_TARGET=x86-64-v3" in done.stderr
    assert done.stderr.count("\n") == 1


@on_x86
def test_a_fault_while_it_speaks_kills_as_ever() -> None:
    assert run("while it speaks").returncode == -4


def test_features_that_the_build_has_and_the_cpu_lacks_are_named() -> None:
    def is_built_with(name: str) -> bool:
        return name in {"SSE3", "AVX2", "AVX512"}

    assert missing_features(is_built_with, ["pni", "avx2"]) == ["AVX512"]
    assert missing_features(is_built_with, ["pni", "avx2", "avx512f"]) == []
    assert missing_features(is_built_with, []) == [], "where the kernel tells no flags"


@pytest.mark.model
def test_llama_cpp_tells_what_it_was_built_with() -> None:
    from worker.backends.library import is_built_with

    assert is_built_with("SSE3") or platform.machine() != "x86_64"
    assert not is_built_with("NO_SUCH_FEATURE")
