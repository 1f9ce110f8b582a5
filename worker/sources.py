"""What a sequence may start from: the slots of other sequences, and snapshots."""

import logging
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass

from worker.backends.base import StateBackend
from worker.cache_figures import CacheFigures
from worker.reuse import Rules, common_prefix
from worker.sequence import Sequence
from worker.snapshots.index import Entry
from worker.snapshots.shelf import Shelf

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Source:
    """A state that begins like the sequence, for ``common`` tokens; it may start from ``kept``."""

    kept: int
    common: int
    live: Sequence | None = None
    entry: Entry | None = None


class Sources:
    def __init__(
        self,
        backend: StateBackend,
        rules: Rules,
        figures: CacheFigures,
        shelf: Shelf | None,
        clock: Callable[[], float],
    ) -> None:
        self._backend = backend
        self._rules = rules
        self._figures = figures
        self._shelf = shelf
        self._clock = clock

    def find(self, sequence: Sequence, actives: Seq[Sequence]) -> list[Source]:
        """The best first; of equals, a slot."""
        fed, scopes = sequence.fed(0, sequence.prefill_end), sequence.reuse.scopes
        found = []
        for other in actives:
            if other is not sequence and other.num_computed and other.reuse.scope in scopes:
                common = common_prefix(fed, other.fed(0, other.num_computed))
                reusable = self._rules.reusable(len(other.prompt), other.num_computed)
                kept = self.usable(sequence, other.num_computed, min(common, reusable))
                found.append(Source(kept, common, live=other))
        for match in self._shelf.store.match(fed, scopes) if self._shelf else ():
            entry, common = match.entry, match.num_common
            is_own = entry.scope == sequence.reuse.own_scope
            kept = self.usable(sequence, len(entry.tokens), common, is_own=is_own)
            found.append(Source(kept, common, entry=entry))
        return sorted(found, key=lambda source: (-source.kept, source.live is None))

    def usable(self, sequence: Sequence, stored: int, common: int, *, is_own: bool = False) -> int:
        return self._rules.usable(
            stored,
            common,
            num_prompt=len(sequence.prompt),
            prefill_end=sequence.prefill_end,
            draws=sequence.draws_first,
            is_own=is_own,
        )

    def restore(self, sequence: Sequence, found: list[Source]) -> None:
        """The first that is still there, into the sequence's slot."""
        begun_s = self._clock()
        source = next((s for s in found if s.kept and self._take(sequence, s)), None)
        if source is None:
            return
        reuse, entry = sequence.reuse, source.entry
        sequence.num_computed = reuse.num_restored = source.kept
        if entry is None:
            reuse.num_safe = min(source.kept, _num_stored(source))
        else:
            reuse.num_safe = source.kept
            reuse.num_shared = 0 if entry.scope == reuse.own_scope else source.kept
        if entry is not None and entry.scope == reuse.own_scope:
            reuse.has_own_snapshot = True
            self._figures.resumed_tokens += source.kept
        else:
            self._figures.count_hit(
                hit_tokens=min(source.kept, len(sequence.prompt)),
                restore_s=self._clock() - begun_s,
            )

    def _take(self, sequence: Sequence, source: Source) -> bool:
        if source.live is not None:
            self._backend.copy_prefix(source.live.slot, sequence.slot, source.kept)
            return True
        assert self._shelf is not None, "a snapshot comes from a shelf"
        assert source.entry is not None, "a source is a slot or a snapshot"
        state = self._shelf.store.open(source.entry)
        if state is None:  # another process has removed it
            return False
        with state:
            slot, kept = sequence.slot, source.kept
            if self._backend.restore_state(slot, state.buffer, state.size, kept):
                return True
        log.warning("a snapshot of %d tokens cannot be restored; it is removed", source.common)
        self._shelf.store.remove(source.entry.name)
        return False


def _num_stored(source: Source) -> int:
    """How much of what a slot holds is in a snapshot for others, or will be when its prompt is computed:
    whoever starts from it need not save that again."""
    assert source.live is not None, "a source is a slot or a snapshot"
    reuse = source.live.reuse
    return max((reuse.num_shared, *reuse.save_points))
