"""How many jobs of a batch wait or run at once. Pure.

Enough that no slot is idle between two looks, few enough that the queue stays that of others.
"""

from shared.admission import Limits

LEAST_JOBS = 16
_LEAST_SHARE = 4
#: Lines that have ended behind one that has not: so many windows of them are kept.
LOOKAHEAD = 16


def window_jobs(slots: int, num_batches: int, limits: Limits) -> int:
    """``slots`` are those of all workers; the batches of a gateway share a window. Never more than half
    of what may wait at all, or of the owner: the other half is for requests that somebody waits for."""
    whole = max(LEAST_JOBS, 2 * slots)
    share = max(_LEAST_SHARE, whole // max(1, num_batches))
    bounds = [limits.max_queued_jobs, limits.max_owner_jobs or limits.max_queued_jobs]
    return max(1, min(share, *(bound // 2 for bound in bounds)))
