"""What those see who may see the same jobs, and how they are told of news."""

import asyncio
from typing import Any

from api.job_view import JobSummary
from api.keyring import Caller, Role
from api.live.events import render_view
from api.live.view import Sight


class Scope:
    """``version`` counts the views that differed; ``frame`` is the latest, rendered once for all."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.num_watchers = 0
        self.frame = b""
        self.version = 0
        self.news = asyncio.Event()
        self.is_over = False
        self._essence: dict[str, Any] = {}

    @staticmethod
    def key_of(caller: Caller) -> str:
        return "all" if caller.role is Role.ADMIN else f"owner:{caller.owner}"

    def show(self, sight: Sight, jobs: list[JobSummary]) -> None:
        view = sight.view(jobs, shows_all=self.caller.role is Role.ADMIN)
        essence = view.essence()
        if essence != self._essence:
            self._essence = essence
            self.frame = render_view(view)
            self.version += 1

    def tell(self) -> None:
        """Wakes all who wait, and those alone."""
        self.news.set()
        self.news = asyncio.Event()

    def let_go(self) -> None:
        """Whoever watches is to come again: elsewhere, or to be told what is wrong."""
        self.is_over = True
        self.tell()
