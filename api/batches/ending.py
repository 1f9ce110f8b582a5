"""What is in the queue for the lines of a batch that ends before it is done: found, and taken out."""

from collections.abc import Iterable, Sequence

from starlette.concurrency import run_in_threadpool

from api.batches.flight import Flight, job_name
from api.batches.record import Batch
from api.batches.results import read_statuses
from api.batches.tools import BatchTools
from shared.errors import ServiceError


async def find_jobs(tools: BatchTools, batch: Batch, flights: Sequence[Flight]) -> None:
    """A holder before may have submitted them. A line that has not all of its jobs is given up."""
    for flight in flights:
        try:
            await flight.prepare(tools)
        except ServiceError:
            flight.is_given_up = True
    waiting = [flight for flight in flights if flight.is_waiting]
    ids = await run_in_threadpool(lambda: [_job_ids(tools, batch, flight) for flight in waiting])
    statuses = await read_statuses(tools.reads, [job_id for found in ids for job_id in found])
    for flight, job_ids in zip(waiting, ids, strict=True):
        there = [job_id for job_id in job_ids if statuses[job_id] is not None]
        if len(there) == len(job_ids):
            flight.jobs, flight.running = job_ids, set(job_ids)
        else:
            await run_in_threadpool(cancel_jobs, tools, there)
            flight.is_given_up = True


def cancel_jobs(tools: BatchTools, job_ids: Iterable[str]) -> None:
    """Blocking. Of those that have ended already nothing is changed."""
    for job_id in job_ids:
        tools.broker.cancel(job_id)


def _job_ids(tools: BatchTools, batch: Batch, flight: Flight) -> list[str]:
    names = [job_name(batch.id, flight.number, index) for index in range(flight.num_jobs)]
    return [tools.broker.named_id(batch.owner, name) for name in names]
