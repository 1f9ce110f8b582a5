"""Starts sequences from what was computed before, in a slot beside them or in a snapshot of any worker
of this host, and saves what others may start from. The rules are ``worker.reuse``'s.
"""

from collections.abc import Callable
from collections.abc import Sequence as Seq
from time import monotonic

from shared.cache_scopes import Sharing, of_job, of_owner, public
from shared.protocol import JobArgs, Priority
from worker.backends.base import StateBackend
from worker.cache_figures import CacheFigures
from worker.leaders import Leaders
from worker.pace import Pace
from worker.reuse import MIN_RESTORED_TOKENS, REFED_TOKENS, Reuse, Rules
from worker.saver import Saver
from worker.sequence import Sequence
from worker.snapshots.shelf import Shelf
from worker.sources import Sources


class PrefixCache:
    def __init__(
        self,
        backend: StateBackend,
        rules: Rules,
        pace: Pace,
        figures: CacheFigures,
        *,
        shelf: Shelf | None,
        sharing: Sharing = "key",
        checkpoint_s: float = 5.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """Without a ``shelf`` only slots of this worker are started from."""
        self._sources = Sources(backend, rules, figures, shelf, clock)
        self._leaders = Leaders(rules, pace, self._sources, shelf, clock)
        self._saver = Saver(backend, rules, pace, figures, shelf, checkpoint_s)
        self._figures = figures
        self._sharing = sharing
        self.keeps_snapshots = shelf is not None

    def reuse_for(self, job_id: str, owner: str, args: JobArgs) -> Reuse:
        own = of_job(job_id)
        if args.warm == "public":
            return Reuse(scope=public(), scopes=(public(),), own_scope=own)
        scope, request = of_owner(owner, self._sharing), args.request
        is_chat = request.messages is not None and args.warm is None
        return Reuse(
            scope=scope,
            scopes=(own, scope, public()),
            own_scope=own,
            keeps_answer=is_chat and request.priority is not Priority.LOW,
        )

    def begin(self, sequence: Sequence, actives: Seq[Sequence], *, is_warm: bool = False) -> None:
        """For a sequence whose slot is open: restores what there is, or has it wait for what another
        one computes. ``is_warm``: it is there for its snapshot."""
        self._figures.count_look_up(prompt_tokens=len(sequence.prompt))
        self._start(sequence, actives, may_wait=not is_warm)
        if is_warm:
            self._saver.save_all_of(sequence)

    def resolve(self, actives: Seq[Sequence]) -> None:
        """Starts what has waited long enough."""
        for sequence in self._leaders.ended_waits(actives):
            self._start(sequence, actives, may_wait=sequence.reuse.may_wait)

    def after_step(self, actives: Seq[Sequence]) -> None:
        self._saver.after_step(actives)

    def leave(self, sequence: Sequence) -> None:
        """Before its slot is closed, for whatever reason."""
        sequence.reuse.stop_waiting()
        self._saver.leave(sequence)

    def park(self, sequence: Sequence) -> None:
        """Saves it for whoever goes on with it, before this returns."""
        self._saver.park(sequence)

    def _start(self, sequence: Sequence, actives: Seq[Sequence], *, may_wait: bool) -> None:
        if sequence.prefill_end < MIN_RESTORED_TOKENS + REFED_TOKENS:
            return
        found = self._sources.find(sequence, actives)
        kept = max((source.kept for source in found), default=0)
        if may_wait and self._leaders.find(sequence, actives, kept):
            return
        self._sources.restore(sequence, found)
        self._saver.plan(sequence, max((source.common for source in found), default=0))
