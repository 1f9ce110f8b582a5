"""The thread that writes snapshots, so that the engine does no more than copy a state."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from queue import Empty, Queue
from threading import Lock, Thread
from time import monotonic

from worker.snapshots.store import Store

log = logging.getLogger(__name__)

_CLEAN_EVERY_S = 30.0
#: A copy of a state of nearly the same size finds its buffer again.
_ROUND_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Order:
    buffer: bytearray
    size: int
    scope: str
    tokens: array[int]
    first_position: int
    reusable: int | None
    replaces_shorter: bool
    on_done: Callable[[], None] | None


class Writer:
    def __init__(self, store: Store, max_buffered_bytes: int) -> None:
        """``max_buffered_bytes``: of copies that are not written yet; beyond it, none are taken."""
        self._store = store
        self._max_bytes = max_buffered_bytes
        self._free: list[bytearray] = []
        self.num_refused = 0
        self._num_bytes = 0  #: of all buffers, free or not
        self._lock = Lock()
        self._orders: Queue[Callable[[], None] | None] = Queue()
        self._lent: dict[int, bytearray] = {}
        self._thread = Thread(target=self._run, name="snapshots", daemon=True)
        self._thread.start()

    def buffer(self, size: int) -> memoryview | None:
        """At least ``size`` bytes for ``submit``; None if the writer is too far behind."""
        with self._lock:
            fitting = [b for b in self._free if len(b) >= size]
            if fitting:
                chosen = min(fitting, key=len)
                self._free.remove(chosen)
            else:
                wanted = -(-size // _ROUND_BYTES) * _ROUND_BYTES
                self._forget_free(wanted)
                is_busy = self._num_bytes > 0
                if is_busy and self._num_bytes + wanted > self._max_bytes:
                    self.num_refused += 1
                    return None
                self._num_bytes += wanted
                chosen = bytearray(wanted)
            view = memoryview(chosen)
            self._lent[id(view.obj)] = chosen
            return view

    def submit(
        self,
        buffer: memoryview,
        size: int,
        *,
        scope: str,
        tokens: Iterable[int],
        first_position: int,
        reusable: int | None = None,
        replaces_shorter: bool = False,
        on_done: Callable[[], None] | None = None,
    ) -> None:
        """``on_done`` is called in the writer's thread, whether or not it could be written."""
        chosen = self._lent.pop(id(buffer.obj))
        copied = array("i", tokens)  # the sequence goes on
        order = _Order(
            chosen, size, scope, copied, first_position, reusable, replaces_shorter, on_done
        )
        self._orders.put(lambda: self._write(order))

    def remove_scope(self, scope: str) -> None:
        """After what was submitted before."""
        self._orders.put(lambda: self._remove_scope(scope))

    def flush(self, timeout_s: float) -> bool:
        """Whether all that was submitted is written in that time."""
        done = self._orders.all_tasks_done
        with done:
            return done.wait_for(lambda: not self._orders.unfinished_tasks, timeout_s)

    def close(self) -> None:
        """After all that was submitted."""
        self._orders.put(None)
        self._thread.join(timeout=30)

    def _forget_free(self, wanted: int) -> None:
        while self._free and self._num_bytes + wanted > self._max_bytes:
            self._num_bytes -= len(self._free.pop())

    def _run(self) -> None:
        cleaned_s = monotonic()
        while True:
            try:
                order = self._orders.get(timeout=_CLEAN_EVERY_S)
            except Empty:
                self._store.clean()
                continue
            if order is None:
                self._orders.task_done()
                return
            try:
                order()
                if monotonic() - cleaned_s >= _CLEAN_EVERY_S:
                    self._store.clean()
                    cleaned_s = monotonic()
            except Exception:  # a thread that ended here would leave others waiting
                log.exception("a snapshot could not be written")
            finally:
                self._orders.task_done()

    def _write(self, order: _Order) -> None:
        try:
            self._store.put(
                order.scope,
                order.tokens,
                memoryview(order.buffer)[: order.size],
                first_position=order.first_position,
                reusable=order.reusable,
                replaces_shorter=order.replaces_shorter,
            )
        finally:
            with self._lock:
                self._free.append(order.buffer)
            if order.on_done is not None:
                order.on_done()

    def _remove_scope(self, scope: str) -> None:
        self._store.remove_scope(scope)
