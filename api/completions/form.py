"""In which form the events of a job are told. It is kept with the job, whose answer may be fetched later."""

from typing import Literal, get_args

from pydantic import ValidationError

from shared.protocol import Frozen

Endpoint = Literal["/v1/chat/completions", "/v1/completions"]
ENDPOINTS: tuple[Endpoint, ...] = get_args(Endpoint)


class Form(Frozen):
    """``tool_format`` is how the model writes calls of tools; ``None`` where it was given none.
    ``fingerprint`` is of the workers that were ready for the model when it was called."""

    endpoint: Endpoint
    model: str
    tool_format: str | None = None
    user: str | None = None
    num_jobs: int | None = None  #: of the call, if there are several
    fingerprint: str | None = None

    @property
    def is_chat(self) -> bool:
        return self.endpoint == "/v1/chat/completions"

    @property
    def id_prefix(self) -> str:
        return "chatcmpl-" if self.is_chat else "cmpl-"

    def call_id(self, job_id: str) -> str:
        return self.id_prefix + job_id

    @classmethod
    def of_note(cls, note: str) -> "Form | None":
        """``None`` for a note of another route."""
        try:
            return cls.model_validate_json(note)
        except ValidationError:
            return None

    def to_note(self) -> str:
        return self.model_dump_json(exclude_none=True)

    def to_identity(self) -> str:
        """What of the note is the call itself: the same call may come again when other workers are there."""
        return self.model_dump_json(exclude_none=True, exclude={"fingerprint"})
