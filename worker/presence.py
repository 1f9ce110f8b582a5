"""A worker's file in the host directory: locked while it lives, it says what cores it seeks or holds.

Pids would not do: workers in containers share the directory and may have the same one.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from shared.cores import parse_cpu_list
from shared.errors import SetupError
from shared.host import WORKERS_FOLDER, host_identity, is_held
from worker.gate import gate, open_lock
from worker.shares import Holder, Seeker


class Presence:
    """``say`` and ``others`` are for use within the gate."""

    def __init__(self, host_dir: Path, incarnation: str) -> None:
        self._path = host_dir / WORKERS_FOLDER / incarnation
        self._said = ""
        with gate(host_dir):  # nobody takes it for a leftover before it is locked
            self._fd = open_lock(self._path)
            if is_held(self._fd):
                os.close(self._fd)
                raise SetupError(f"a worker with the incarnation {incarnation} runs already")
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            self._write("")

    def say(self, state: Seeker | Holder) -> None:
        text = _to_text(state)
        if text != self._said:
            self._write(text)

    def touch(self) -> None:
        """A sign of life, for the health check of this host."""
        with suppress(OSError):
            os.utime(self._fd)

    def others(self) -> dict[str, Seeker | Holder]:
        """The live ones that seek or hold cores. What the dead have left is removed."""
        found: dict[str, Seeker | Holder] = {}
        for path in self._path.parent.iterdir():
            if path == self._path:
                continue
            try:
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:  # it has just ended: no gate is needed for that
                continue
            try:
                if not is_held(fd):
                    path.unlink(missing_ok=True)
                elif state := _from_text(os.pread(fd, 65_536, 0).decode()):
                    found[path.name] = state
            finally:
                os.close(fd)
        return found

    def close(self) -> None:
        with suppress(OSError):  # else the next worker to come removes it
            self._path.unlink()
        os.close(self._fd)

    def _write(self, text: str) -> None:
        content = f"{host_identity()}\n{text}\n".encode()
        # NOTE: in this order, so that a full tmpfs, which has this page already, has room for it.
        os.pwrite(self._fd, content, 0)
        os.ftruncate(self._fd, len(content))
        self._said = text


def _to_text(state: Seeker | Holder) -> str:
    cores = ",".join(map(str, state.cores))
    if isinstance(state, Holder):
        return f"holds {cores}"
    return f"seeks {cores} {state.threads} {state.at_most}"


def _from_text(text: str) -> Seeker | Holder | None:
    _, _, state = text.partition("\n")
    match state.split():
        case ["holds", cores]:
            return Holder(parse_cpu_list(cores))
        case ["seeks", cores, threads, at_most]:
            return Seeker(int(threads), int(at_most), parse_cpu_list(cores))
    return None  # it does not seek yet
