"""From a bare checkout to something that runs: ``python3 -m cli.bootstrap`` makes ``.venv``.

Runs on the system's Python with the standard library alone, and knows only files of the checkout:
the lock file, and a stamp that says for which lock file ``.venv`` was made.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / ".ready"
LOG = VENV / "build.log"
OLDEST_PYTHON = (3, 11)
NATIVE = "llama-cpp-python"

COMPILER_HELP = """no C++ compiler was found (looked for {names}); llama.cpp is built for your CPU. Install one:
    Debian, Ubuntu:  sudo apt-get install build-essential
    Fedora:          sudo dnf install gcc-c++ make"""
VENV_HELP = """this Python cannot make virtual environments (ensurepip is missing). Install it:
    Debian, Ubuntu:  sudo apt-get install python3-venv
    Fedora:          sudo dnf install python3-pip"""
PYTHON_HELP = """Python {oldest} or newer is needed, and this is {found} ({path}). Install it:
    Debian, Ubuntu:  sudo apt-get install python3.11 python3.11-venv
    Fedora:          sudo dnf install python3.12
  or name one:       make up PYTHON=/path/to/python3.12"""


class BootstrapFailed(Exception):
    """What is missing, and what to do."""


def main() -> int:
    try:
        _check_python()
        if not _is_ready():
            _install()
        return subprocess.call(
            [_venv_python(), "-P", "-m", "cli", "model", "pull", "smollm2", "--quiet"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    except BootstrapFailed as failure:
        print("error: %s" % failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def split_lock(text: str) -> tuple[str, str]:
    """The lock file without the package that is compiled, and that package alone."""
    entries = re.split(r"(?m)^(?=[A-Za-z0-9])", text)
    native = [entry for entry in entries if re.match(re.escape(NATIVE) + r"\s*==", entry)]
    return "".join(entry for entry in entries if entry not in native), "".join(native)


def num_requirements(text: str) -> int:
    return len(re.findall(r"(?m)^[A-Za-z0-9][^=\s]*==", text))


def ninja_progress(line: str) -> tuple[int, int] | None:
    """``[12/345] Building CXX object ...`` -> (12, 345)"""
    match = re.search(r"\[(\d+)/(\d+)\]", line)
    return (int(match[1]), int(match[2])) if match and int(match[2]) else None


def build_environment(environ: dict[str, str]) -> dict[str, str]:
    """With SOURCE_DATE_EPOCH set, llama.cpp would be built for any CPU, without AVX."""
    env = {name: value for name, value in environ.items() if name != "SOURCE_DATE_EPOCH"}
    env.setdefault("CMAKE_ARGS", "-DLLAVA_BUILD=OFF")
    return env


def _check_python() -> None:
    if sys.version_info >= OLDEST_PYTHON:
        return
    for minor in (13, 12, 11):
        newer = shutil.which("python3.%d" % minor)
        if newer:
            os.execv(newer, [newer, "-m", "cli.bootstrap", *sys.argv[1:]])
    oldest, found = (".".join(map(str, v)) for v in (OLDEST_PYTHON, sys.version_info[:3]))
    raise BootstrapFailed(PYTHON_HELP.format(oldest=oldest, found=found, path=sys.executable))


def _fingerprint() -> str:
    parts = [LOCK.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), str(ROOT).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _is_ready() -> bool:
    return STAMP.exists() and STAMP.read_text() == _fingerprint() and _venv_python().exists()


def _venv_python() -> Path:
    return VENV / "bin" / "python"


def _install() -> None:
    if not _venv_python().exists():
        _make_venv()
    rest, native = split_lock(LOCK.read_text())
    LOG.write_text("")
    _install_libraries(rest)
    _install_native(native)
    _say("installing mini-vllm itself")
    _pip(["install", "--no-deps", "-e", str(ROOT)], dict(os.environ), lambda line: None)
    STAMP.write_text(_fingerprint())


def _make_venv() -> None:
    _say("making %s" % VENV)
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        raise BootstrapFailed(VENV_HELP) from None
    done = subprocess.run([sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(VENV, ignore_errors=True)
        raise BootstrapFailed("%s\n\n%s" % (VENV_HELP, (done.stdout + done.stderr).strip()))


def _install_libraries(lock: str) -> None:
    total = num_requirements(lock)
    bar = Bar("installing libraries", total)
    seen = 0

    def show(line: str) -> None:
        nonlocal seen
        if line.startswith(("Collecting ", "Requirement already satisfied: ")):
            seen += 1
            bar.show(min(seen, total))

    with _requirements(lock) as path:
        _pip(["install", "--require-hashes", "-r", path], dict(os.environ), show)
    bar.close()


def _install_native(lock: str) -> None:
    compilers = [os.environ.get("CXX") or "c++", "g++", "clang++"]
    has_compiler = any(shutil.which(name.split()[0]) for name in compilers)
    if not has_compiler and not _has_native():
        raise BootstrapFailed(COMPILER_HELP.format(names=", ".join(dict.fromkeys(compilers))))
    bar = Bar("llama.cpp (compiled for this CPU: 5-10 minutes the first time)", 0)

    def show(line: str) -> None:
        progress = ninja_progress(line)
        if progress:
            bar.total = progress[1]
            bar.show(progress[0])

    bar.show(0)
    with _requirements(lock) as path:
        arguments = ["install", "-v", "--require-hashes", "--no-deps", "-r", path]
        _pip(arguments, build_environment(dict(os.environ)), show)
    bar.close()


def _has_native() -> bool:
    return bool(list(VENV.glob("lib/python*/site-packages/llama_cpp_python-*.dist-info")))


class _requirements:
    """A requirements file for as long as it is needed."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __enter__(self) -> str:
        fd, self._path = tempfile.mkstemp(suffix=".txt", prefix="mini-vllm-")
        with os.fdopen(fd, "w") as file:
            file.write(self._text)
        return self._path

    def __exit__(self, *_: object) -> None:
        os.unlink(self._path)


def _pip(arguments: list[str], env: dict[str, str], show: Callable[[str], None]) -> None:
    """Everything pip says goes to the log; the user sees the end of it if it fails."""
    command = [str(_venv_python()), "-m", "pip", *arguments, "--no-input", "--progress-bar", "off"]
    env = {**env, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUNBUFFERED": "1"}
    tail: deque[str] = deque(maxlen=30)
    with open(LOG, "a") as log:
        log.write("$ %s\n" % " ".join(command))
        for line in _lines_of(command, env):
            log.write(line)
            tail.append(line)
            show(line.strip())
    if tail and tail[-1].startswith("\0"):
        tail.pop()
        text = "".join(tail).rstrip()
        raise BootstrapFailed("pip failed; its last lines (all of them: %s):\n%s" % (LOG, text))


def _lines_of(command: list[str], env: dict[str, str]) -> Iterator[str]:
    process = subprocess.Popen(
        command,
        cwd=str(VENV),
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None, "stdout is a pipe"
    yield from process.stdout
    if process.wait():
        yield "\0exit code %d\n" % process.returncode


class Bar:
    """One line that fills up on a terminal; a few lines elsewhere."""

    def __init__(self, title: str, total: int) -> None:
        self.title = title
        self.total = total
        self._began_s = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        self._tenth = -1

    def show(self, done: int) -> None:
        share = done / self.total if self.total else 0.0
        if self._is_terminal:
            filled = "#" * int(share * 30)
            elapsed_s = time.monotonic() - self._began_s
            text = "\r%s [%-30s] %d/%d %d s" % (self.title, filled, done, self.total, elapsed_s)
            sys.stderr.write(text + "\x1b[K")
            sys.stderr.flush()
        elif int(share * 10) > self._tenth:
            self._tenth = int(share * 10)
            _say("%s: %d %%" % (self.title, share * 100))

    def close(self) -> None:
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K")
        _say("%s: done in %d s" % (self.title, time.monotonic() - self._began_s))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
