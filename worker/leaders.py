"""Whom a sequence waits for: another one that computes the same beginning at this moment."""

from collections.abc import Callable
from collections.abc import Sequence as Seq

from worker.pace import Pace
from worker.reuse import MAX_WAITS, Rules, common_prefix
from worker.sequence import Sequence
from worker.snapshots.shelf import Shelf
from worker.sources import Sources

#: A lock is asked for no more often.
_CLAIM_POLL_S = 0.01
#: How long to wait for another worker: so many times what it should take, and a little.
_PATIENCE_RATIO = 3.0
_PATIENCE_S = 1.0


class Leaders:
    def __init__(
        self,
        rules: Rules,
        pace: Pace,
        sources: Sources,
        shelf: Shelf | None,
        clock: Callable[[], float],
    ) -> None:
        self._rules = rules
        self._pace = pace
        self._sources = sources
        self._shelf = shelf
        self._clock = clock
        self._polled_s = 0.0

    def find(self, sequence: Sequence, actives: Seq[Sequence], kept: int) -> bool:
        """Whether it has somebody to wait for now; ``kept`` tokens could be restored at once."""
        return self._follow(sequence, actives, kept) or self._await(sequence, kept)

    def ended_waits(self, actives: Seq[Sequence]) -> list[Sequence]:
        now_s = self._clock()
        may_poll = now_s - self._polled_s >= _CLAIM_POLL_S
        if may_poll:
            self._polled_s = now_s
        waiting = [s for s in actives if s.reuse.is_waiting]
        ended = [s for s in waiting if self._is_over(s, actives, now_s, may_poll)]
        for sequence in ended:
            reuse = sequence.reuse
            is_late = bool(reuse.awaited_claim) and now_s >= reuse.wait_until_s
            reuse.num_waits = MAX_WAITS if is_late else reuse.num_waits + 1
            reuse.stop_waiting()
        return ended

    def _is_over(
        self, sequence: Sequence, actives: Seq[Sequence], now_s: float, may_poll: bool
    ) -> bool:
        reuse = sequence.reuse
        if reuse.leader is not None:
            return reuse.leader not in actives or reuse.leader.num_computed >= reuse.awaited
        if now_s >= reuse.wait_until_s or self._shelf is None:
            return True
        return may_poll and not self._shelf.claims.is_live(reuse.awaited_claim)

    def _follow(self, sequence: Sequence, actives: Seq[Sequence], kept: int) -> bool:
        """A sequence of this worker."""
        reuse, fed = sequence.reuse, sequence.fed(0, sequence.prefill_end)
        for other in actives:
            if not other.is_prefilling or _follows(other, sequence):
                continue
            if other.reuse.scope not in reuse.scopes:
                continue
            common = common_prefix(fed, other.fed(0, min(other.prefill_end, len(other.prompt))))
            later = self._sources.usable(sequence, 0, common)
            rest = later - other.num_computed
            is_better = later > max(kept, reuse.awaited)
            if rest > 0 and is_better and self._rules.is_worth_waiting(later, kept, rest):
                reuse.leader, reuse.awaited = other, later
        if reuse.leader is None:
            return False
        if self._rules.window_tokens:  # a state that has gone on cannot be trimmed
            reuse.leader.reuse.cuts += (reuse.awaited,)
        return True

    def _await(self, sequence: Sequence, kept: int) -> bool:
        """What another worker is about to save."""
        if self._shelf is None:
            return False
        reuse, fed = sequence.reuse, sequence.fed(0, sequence.prefill_end)
        for claim in self._shelf.claims.match(fed, reuse.scopes, start=kept):
            point = self._rules.save_point(claim.num_tokens, claim.start)
            rest = point - claim.start
            later = self._sources.usable(sequence, point, min(point, claim.num_common))
            if self._rules.is_worth_waiting(later, kept, rest):
                reuse.awaited_claim = claim.name
                patience_s = _PATIENCE_S + _PATIENCE_RATIO * self._pace.seconds_for(rest)
                reuse.wait_until_s = self._clock() + patience_s
                return True
        return False


def _follows(other: Sequence, sequence: Sequence) -> bool:
    """Itself, or one that waits for it, if through others: two that wait for each other never end."""
    ahead: Sequence | None = other
    while ahead is not None:
        if ahead is sequence:
            return True
        ahead = ahead.reuse.leader
    return False
