"""The supervisor's line to Redis: it buries the dead, and sees who was declared dead by others.

In a thread of its own, since a Redis that hangs must not keep the supervisor from its children.
"""

import logging
from collections.abc import Callable
from threading import Condition, Thread

from redis import Redis

from cli.leftovers import as_text
from shared.connection import connect
from shared.keys import WORKERS
from shared.logs import say

_EVERY_S = 1.0
#: How long one command may take, and how long a burial is waited for.
_TIMEOUT_S = 2.0


class Registrar:
    """``bury`` bears being repeated."""

    def __init__(self, redis_url: str, bury: Callable[[Redis, str, bool], object]) -> None:
        self._client = connect(redis_url, timeout_s=_TIMEOUT_S)
        self._bury = bury
        self._changed = Condition()
        self._unburied: dict[str, bool] = {}  #: whether the death counts, by incarnation
        self._living: frozenset[str] | None = None  #: None: Redis does not answer
        self._known: set[str] = set()
        self._problem: Exception | None = None
        self._is_closed = False
        self._thread = Thread(target=self._run, name="registrar", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(_TIMEOUT_S)

    def bury(self, incarnation: str, counts: bool = True) -> None:
        """It is done on return, unless Redis does not answer: then as soon as it does. Only the first
        to find that out waits for it."""
        with self._changed:
            self._known.discard(incarnation)
            self._unburied[incarnation] = counts
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._problem or incarnation not in self._unburied, _TIMEOUT_S
            )
            if incarnation in self._unburied:
                self._problem = self._problem or TimeoutError("no answer yet")
                words = f"{incarnation} is buried later: {self._problem}"
                say(words, head="up: ", level=logging.WARNING)

    def has_left(self, incarnation: str) -> bool:
        """It was among the living and no longer is. ``False`` while Redis does not answer."""
        with self._changed:
            if self._living is None:
                return False
            if incarnation in self._living:
                self._known.add(incarnation)
            return incarnation in self._known - self._living

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._is_wanted, _EVERY_S)
                if self._is_closed:
                    return
                burials = dict(self._unburied)
            living, problem = None, None
            try:
                for incarnation, counts in burials.items():
                    self._bury(self._client, incarnation, counts)
                living = frozenset(as_text(raw) for raw in self._client.smembers(WORKERS))
            except Exception as error:  # a thread that ended here would bury nobody any more
                problem = error
            with self._changed:
                self._living, self._problem = living, problem
                if problem is None:
                    self._unburied = {w: c for w, c in self._unburied.items() if w not in burials}
                self._changed.notify_all()

    def _is_wanted(self) -> bool:
        """Before its time: a burial waits, and Redis answered last time."""
        return self._is_closed or bool(self._unburied and not self._problem)
