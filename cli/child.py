"""One supervised process: how it is started, what it announced, and its last words."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from cli.policy import RestartPolicy, counts_as_death
from cli.watch import Watch
from shared.logs import about, is_json

log = logging.getLogger(__name__)

_NUM_LAST_WORDS = 12
_TETHER = [sys.executable, "-P", "-m", "cli.tether"]


@dataclass(slots=True)
class Child:
    """``make_command`` is called for each start with the descriptor to announce readiness on;
    ``on_death`` after each death, with whether it counts against what the child was doing."""

    name: str
    make_command: Callable[[int], list[str]]
    environment: Mapping[str, str]
    death_signal: signal.Signals = signal.SIGKILL
    on_death: Callable[[bool], None] | None = None
    inherits: tuple[int, ...] = ()  #: descriptors that stay open in it
    watches: Sequence[Watch] = ()
    is_condemned: bool = False  #: it does not work, and is ended for that
    hurries: bool = False  #: a second SIGTERM ends its waiting
    policy: RestartPolicy = field(default_factory=RestartPolicy)
    process: subprocess.Popen[bytes] | None = None
    announced: list[str] = field(default_factory=list)  #: words of this start: waiting, ready
    last_words: deque[str] = field(default_factory=lambda: deque(maxlen=_NUM_LAST_WORDS))
    _ears: list[threading.Thread] = field(default_factory=list)

    def start(self, now_s: float) -> None:
        read_fd, write_fd = os.pipe()
        self.announced.clear()
        self.is_condemned = False
        self.policy.started(now_s)
        for watch in self.watches:
            watch.patience.begin_anew()
        self.process = subprocess.Popen(
            [
                *_TETHER,
                self.death_signal.name,
                str(os.getpid()),
                "--",
                *self.make_command(write_fd),
            ],
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            stdout=subprocess.PIPE,
            pass_fds=[write_fd, *self.inherits],
            start_new_session=True,
        )
        os.close(write_fd)
        self._ears = [
            threading.Thread(target=self._hear_ready, args=(read_fd,), daemon=True),
            threading.Thread(target=self._hear_errors, args=(self.process,), daemon=True),
        ]
        for ear in self._ears:
            ear.start()

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.is_running:
            self.process.send_signal(number)

    def complaint(self, now_s: float) -> str | None:
        """Why it cannot be left to run any longer."""
        if self.process is None or not self.is_running:
            return None
        for watch in self.watches:
            if watch.patience.is_out(watch.is_so(self.process.pid), now_s):
                return watch.complaint
        return None

    def reap(self) -> int | None:
        """The exit code, once, after its last words were heard; ``None`` while it runs."""
        if self.process is None or self.process.poll() is None:
            return None
        code = self.process.returncode
        for ear in self._ears:
            ear.join(timeout=2)
        if self.process.stdout:
            self.process.stdout.close()
        self.process = None
        if self.on_death:
            self.on_death(counts_as_death(code, self.is_condemned))
        return code

    def _hear_ready(self, read_fd: int) -> None:
        with os.fdopen(read_fd) as lines:
            for line in lines:
                self.policy.ready()  # one that waits for a core is as well as one that works
                self.announced.append(line.strip())

    def _hear_errors(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.last_words.append(line.decode(errors="replace").rstrip())
            if is_json() and not line.startswith(b"{"):
                # A library's, or a last word: it is no event by itself.
                log.warning("%s", self.last_words[-1], extra=about(said_by=self.name))
                continue
            # NOTE: a child blocks on a full pipe, so this reads on when nobody reads ours.
            with suppress(OSError):
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()
