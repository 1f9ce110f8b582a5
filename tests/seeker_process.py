"""A process that seeks cores in a host directory as a worker does, without a model:
``python -m tests.seeker_process HOST_DIR INCARNATION NUM_CORES THREADS EXPECTED``.

It says ``here``, then with a line on its input it begins to seek, says ``cores 0,1`` and lives on.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.machines import plain_machine
from worker.presence import Presence
from worker.search import CoreSearch


class SeekerProcess:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def seek(self) -> "SeekerProcess":
        assert self._process.stdin
        self._process.stdin.write("seek\n")
        self._process.stdin.flush()
        return self

    def read(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def cores(self) -> list[int]:
        """Those that it took; waits until it has."""
        word, cores = self.read().split()
        assert word == "cores"
        return [int(core) for core in cores.split(",")]

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        self.kill()
        self._process.communicate()


@contextmanager
def seeking(
    host_dir: Path, names: str, num_cores: int, threads: int = 0, expected: int = 0
) -> Iterator[list[SeekerProcess]]:
    """One for each letter of ``names``, all of them present; none seeks before it is told to."""
    seekers = []
    command = [sys.executable, "-m", __name__, str(host_dir)]
    flags = [str(num_cores), str(threads), str(expected)]
    try:
        for name in names:
            process = subprocess.Popen(
                [*command, name, *flags],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            seekers.append(SeekerProcess(process))
        assert [seeker.read() for seeker in seekers] == ["here"] * len(names)
        yield seekers
    finally:
        for seeker in seekers:
            seeker.close()


def main(host_dir: str, incarnation: str, num_cores: str, threads: str, expected: str) -> None:
    presence = Presence(Path(host_dir), incarnation)
    print("here", flush=True)
    sys.stdin.readline()
    search = CoreSearch(
        Path(host_dir),
        plain_machine(int(num_cores)),
        presence,
        threads=int(threads),
        expected=int(expected),
    )
    while not (lease := search.attempt(time.monotonic())):
        time.sleep(0.02)
    print("cores", ",".join(map(str, lease.cores)), flush=True)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
