"""When states are saved: prompts, answers of chats, checkpoints, and sequences that are parked."""

from collections.abc import Sequence as Seq

from shared.protocol import JobStatus
from worker.backends.base import StateBackend
from worker.cache_figures import CacheFigures
from worker.pace import Pace
from worker.reuse import MIN_RESTORED_TOKENS, Rules
from worker.sequence import Sequence
from worker.snapshots.shelf import Shelf


class Saver:
    def __init__(
        self,
        backend: StateBackend,
        rules: Rules,
        pace: Pace,
        figures: CacheFigures,
        shelf: Shelf | None,
        checkpoint_s: float,
    ) -> None:
        self._backend = backend
        self._rules = rules
        self._pace = pace
        self._figures = figures
        self._shelf = shelf
        self._checkpoint_s = checkpoint_s

    def plan(self, sequence: Sequence, common: int) -> None:
        """For a sequence that starts now; something stored has its first ``common`` tokens."""
        if self._shelf is None:
            return
        reuse, num_prompt = sequence.reuse, len(sequence.prompt)
        kept = min(sequence.num_computed, num_prompt)
        end = self._rules.save_point(num_prompt, kept)
        popular = self._rules.popular_point(common, kept, end or num_prompt)
        self._save_at(sequence, [point for point in (popular, end) if point > kept])
        if end:
            reuse.claim = self._shelf.claims.claim(reuse.scope, sequence.prompt, kept)

    def save_all_of(self, sequence: Sequence) -> None:
        """Of its prompt, however short."""
        if self._shelf is not None:
            self._save_at(sequence, [len(sequence.prompt)])

    def after_step(self, actives: Seq[Sequence]) -> None:
        """Copies out what is due: one state a step, since running streams wait for it; the rest later,
        which changes nothing but where the window of a model passes on."""
        if self._shelf is None:
            return
        for sequence in actives:
            points = sequence.reuse.save_points
            if points and sequence.num_computed >= points[0]:
                sequence.reuse.save_points = points[1:]
                self._save(sequence, sequence.reuse.scope)
                if not self._rules.window_tokens:
                    return
        for sequence in actives:
            unsafe = sequence.num_computed - sequence.reuse.num_safe
            if unsafe > 0 and self._pace.seconds_for(unsafe) >= self._checkpoint_s:
                if self._save(sequence, sequence.reuse.own_scope):
                    sequence.reuse.has_own_snapshot = True
                return

    def leave(self, sequence: Sequence) -> None:
        reuse, end = sequence.reuse, sequence.end
        if self._shelf is not None and end is not None:
            is_answer = end.status is JobStatus.COMPLETED and reuse.keeps_answer
            is_due = bool(reuse.save_points) and sequence.num_computed >= reuse.save_points[0]
            if is_due or (is_answer and self._unsafe(sequence) >= self._rules.min_tokens):
                reuse.save_points = ()
                self._save(sequence, reuse.scope)
            if reuse.has_own_snapshot:
                self._shelf.writer.remove_scope(reuse.own_scope)
        if reuse.claim is not None:
            reuse.claim.release()
            reuse.claim = None

    def park(self, sequence: Sequence) -> None:
        if self._shelf is None or sequence.num_computed < MIN_RESTORED_TOKENS:
            return
        state = memoryview(bytearray(self._backend.state_size_bytes(sequence.slot)))
        self._backend.save_state(sequence.slot, state)
        is_kept = self._shelf.store.put(
            sequence.reuse.own_scope,
            sequence.fed(0, sequence.num_computed),
            state,
            first_position=self._rules.first_position(sequence.num_computed),
            replaces_shorter=True,
        )
        self._figures.parked += is_kept

    def _save_at(self, sequence: Sequence, points: list[int]) -> None:
        sequence.reuse.save_points = tuple(points)
        if self._rules.window_tokens:
            sequence.reuse.cuts += tuple(points)

    def _unsafe(self, sequence: Sequence) -> int:
        """Tokens of which others could start from no snapshot."""
        num_computed = self._rules.reusable(len(sequence.prompt), sequence.num_computed)
        return num_computed - sequence.reuse.num_safe

    def _save(self, sequence: Sequence, scope: str) -> bool:
        """Copies its state for the writer's thread; False if that is too far behind."""
        assert self._shelf is not None, "nothing is saved without a shelf"
        reuse, num_computed = sequence.reuse, sequence.num_computed
        is_own = scope == reuse.own_scope
        size = self._backend.state_size_bytes(sequence.slot)
        buffer = self._shelf.writer.buffer(size)
        if buffer is None:
            return False
        self._backend.save_state(sequence.slot, buffer)
        claim = None
        if not is_own and not reuse.save_points:  # what it promised is what is saved here
            claim, reuse.claim = reuse.claim, None
        reusable = self._rules.reusable(len(sequence.prompt), num_computed)
        self._shelf.writer.submit(
            buffer,
            size,
            scope=scope,
            tokens=sequence.fed(0, num_computed),
            first_position=self._rules.first_position(num_computed),
            reusable=num_computed if is_own else reusable,
            replaces_shorter=is_own or not self._rules.window_tokens,
            on_done=claim.release if claim is not None else None,
        )
        reuse.num_safe = num_computed
        if not is_own:
            reuse.num_shared = num_computed
        return True
