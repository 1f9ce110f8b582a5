"""What is said of a worker that was lost, by whoever buries it."""

import logging
from collections.abc import Sequence

from shared.logs.context import about

log = logging.getLogger(__name__)


def log_lost(incarnation: str, job_ids: Sequence[str]) -> None:
    """One line for the worker, and one for each job that it held."""
    words = "worker %s is lost; %d jobs of its moved"
    log.warning(words, incarnation, len(job_ids), extra=about(worker=incarnation))
    for job_id in job_ids:
        told = about(job=job_id, worker=incarnation)
        log.info("job %s: taken from the lost worker %s", job_id, incarnation, extra=told)
