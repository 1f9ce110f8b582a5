"""Whether all workers of a model run the same weights. Pure.

It is said and not refused: during a rolling change it is so for a while, and meant.
"""

from collections import Counter
from collections.abc import Iterable

from api.fleet import WorkerView
from shared.protocol import Weights


def mixed_weights(workers: Iterable[WorkerView]) -> tuple[str, ...]:
    """A warning for each model whose live workers differ, of those that know theirs."""
    kinds: dict[str, Counter[Weights]] = {}
    for worker in workers:
        if worker.is_live and worker.weights:
            kinds.setdefault(worker.model, Counter())[worker.weights] += 1
    return tuple(
        f"The workers of {model} run different weights ({_listed(counts)}), so the same request may be "
        "answered differently; that is as it should be only while they are changed one by one."
        for model, counts in sorted(kinds.items())
        if len(counts) > 1
    )


def _listed(counts: Counter[Weights]) -> str:
    ordered = sorted(
        counts.items(), key=lambda kind: (-kind[1], kind[0].format, kind[0].fingerprint)
    )
    return ", ".join(f"{count} x {kind.format} {kind.fingerprint}" for kind, count in ordered)
