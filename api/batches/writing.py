"""Turns lines that are done into those of the output and error file, and counts them. Pure."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from api.batches import outcome
from api.batches.flight import Flight
from api.batches.record import Progress
from shared.errors import InternalError, JobCancelled, ServiceError
from shared.stream import Transcript

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Writing:
    """``ending`` is what the batch becomes before it is done: ``cancelled`` or ``expired``; else ''."""

    batch_id: str
    now_s: int
    ending: str
    progress: Progress
    output: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)

    def add(self, flight: Flight, results: Sequence[Transcript]) -> None:
        self.progress = self.progress.model_copy(
            update={"lines": flight.number, "input_bytes": flight.end}
        )
        if flight.line is None:
            return
        custom_id = flight.line.custom_id
        if flight.is_given_up:
            self._fail(outcome.unfinished(self.batch_id, custom_id, self.ending), 0)
            return
        request_id = f"{self.batch_id}/{flight.number}"
        try:
            body = self._body(flight, results)
        except ServiceError as error:
            if self.ending and isinstance(error, JobCancelled):
                self._fail(outcome.unfinished(self.batch_id, custom_id, self.ending), 0)
            else:
                self._fail(outcome.refused(self.batch_id, custom_id, request_id, error), 1)
            return
        line = outcome.answered(self.batch_id, custom_id, request_id, body)
        self.output.append(line)
        usage = body["usage"]
        done = self.progress
        self.progress = done.model_copy(
            update={
                "output_bytes": done.output_bytes + len(line),
                "completed": done.completed + 1,
                "prompt_tokens": done.prompt_tokens + usage["prompt_tokens"],
                "cached_tokens": done.cached_tokens
                + usage["prompt_tokens_details"]["cached_tokens"],
                "completion_tokens": done.completion_tokens + usage["completion_tokens"],
            }
        )

    def _body(self, flight: Flight, results: Sequence[Transcript]) -> dict[str, Any]:
        if flight.refusal is not None:
            raise flight.refusal
        assert flight.call is not None
        try:
            call_id = flight.call.form.call_id(flight.jobs[0])
            return flight.call.answer(call_id, self.now_s, results)
        except ServiceError:
            raise
        except Exception:  # one line is not to hold up the others for ever
            log.exception("batch %s: line %d cannot be answered", self.batch_id, flight.number)
            raise InternalError from None

    def _fail(self, line: bytes, num_failed: int) -> None:
        self.errors.append(line)
        done = self.progress
        self.progress = done.model_copy(
            update={
                "error_bytes": done.error_bytes + len(line),
                "failed": done.failed + num_failed,
            }
        )
