"""A played worker that ends whatever comes, so that no reader of a job waits for long."""

import threading

from shared.scripts import run_script
from tests.gateway import PlayedWorker


class BusyWorker(PlayedWorker):
    """Runs in a thread of its own, in a ``with``."""

    def __enter__(self) -> "BusyWorker":
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(timeout=20)
        assert not self._thread.is_alive(), "the worker did not stop"

    def _run(self) -> None:
        while not self._is_over.wait(0.005):
            for job in run_script(self.client, "pop", self.name, self.model, 0, 8, 8, 16, 3600, 0):
                if len(job) > 1:  # else it is none of ours
                    self._finish(job[0].decode())

    def _finish(self, job_id: str) -> None:
        self.start(job_id)
        self.token(job_id, 0, "a")
        self.end(job_id, 1)
