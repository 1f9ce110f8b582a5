"""Says once that Redis refuses, for all parts of a gateway that meet it.

A login or a right can be mended in Redis while a gateway runs, so it goes on, and asks each second.
"""

import logging
import time
from collections.abc import Callable
from threading import Lock

from shared.login import login_problem, rights_problem
from shared.redis_url import shown_url

log = logging.getLogger(__name__)

#: Met again after so long, a refusal is news: in between Redis had taken us.
_QUIET_S = 60.0


class Complaints:
    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._where = shown_url(url)
        self._clock = clock
        self._lock = Lock()
        self._met_s: dict[str, float] = {}  #: by problem, when it was met last

    def covers(self, error: Exception) -> bool:
        """Whether Redis refuses us by this error; then it has been said."""
        problem = login_problem(error) or rights_problem(error)
        if problem is None:
            return False
        now_s = self._clock()
        with self._lock:  # parts of a gateway run in threads of their own
            met_s = self._met_s.get(problem)
            self._met_s[problem] = now_s
        if met_s is None or now_s - met_s >= _QUIET_S:
            log.error("Redis at %s refuses this gateway: %s", self._where, problem)
        return True
