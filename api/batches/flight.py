"""A line of a batch on its way, and what is put into the queue for it."""

from dataclasses import dataclass, field
from functools import partial

from starlette.concurrency import run_in_threadpool

from api.admission import check_request
from api.batches.lines import Line
from api.batches.tools import BatchTools
from api.completions.call import Call
from shared.errors import (
    IdempotencyConflict,
    ModelNotFound,
    NoWorkerReady,
    ServiceError,
    TooManyRequests,
    Unavailable,
)
from shared.protocol import Priority
from shared.shapes import check_shape


@dataclass(slots=True)
class Flight:
    """``line`` is ``None`` for an empty one, ``jobs`` empty until it is submitted."""

    number: int
    end: int
    line: Line | None
    model: str = ""  #: name of its queues
    call: Call | None = None  #: with what is known of the model
    jobs: list[str] = field(default_factory=list)
    running: set[str] = field(default_factory=set)
    refusal: ServiceError | None = None
    is_given_up: bool = False  #: the batch ends before it has

    @property
    def num_jobs(self) -> int:
        return len(self.line.call.jobs) if self.line else 0

    @property
    def is_done(self) -> bool:
        if self.line is None or self.refusal is not None or self.is_given_up:
            return True
        return bool(self.jobs) and not self.running

    @property
    def is_waiting(self) -> bool:
        return not self.is_done and not self.jobs

    def lose(self) -> None:
        """Redis no longer knows one of its jobs: all are submitted again, and those that are there stay."""
        self.jobs, self.running = [], set()

    async def prepare(self, tools: BatchTools) -> None:
        """Raises ``ServiceError`` for what will be otherwise later; what never will is its refusal."""
        assert self.line is not None
        model = await tools.models.find(self.line.call.model)
        call = self.line.call.served_by(model.name, model.tool_format, model.fingerprint)
        try:
            for job in call.jobs[:: call.num_choices]:
                check_request(job, model, tools.settings, ids_field="prompt")
            if call.jobs[0].calls_tools:
                await run_in_threadpool(check_shape, call.jobs[0], model.tool_format)
        except ServiceError as error:
            if is_passing(error):
                raise
            self.refusal = error
        self.model, self.call = model.name, call

    def submit(self, tools: BatchTools, batch_id: str, owner: str, fence: int) -> None:
        """Blocking. Again it names the same jobs, whoever calls it."""
        assert self.call is not None
        jobs = []
        for index, job in enumerate(self.call.jobs):
            low = job.model_copy(update={"priority": Priority.LOW})
            key = job_name(batch_id, self.number, index)
            submit = partial(
                tools.broker.submit,
                low,
                f"{batch_id}/{self.number}",
                owner=owner,
                model=self.model,
                note=self.call.form.to_note(),
                identity=self.call.form.to_identity(),
            )
            try:
                done = submit(idempotency_key=key)
            except IdempotencyConflict:
                # A gateway of another version read the line in another way.
                done = submit(idempotency_key=f"{key} {fence}")
            jobs.append(done.job_id)
        self.jobs, self.running = jobs, set(jobs)


def job_name(batch_id: str, number: int, index: int) -> str:
    """An idempotency key that no user can send: there is a space in it."""
    return f"batch {batch_id} {number} {index}"


def is_passing(error: ServiceError) -> bool:
    """Whether it is worth waiting. A model was there when the file was checked."""
    kinds = (TooManyRequests, Unavailable, NoWorkerReady, ModelNotFound)
    return isinstance(error, kinds)
