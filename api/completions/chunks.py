"""The chunks of a stream of OpenAI's API: what the events of one choice are as pieces of it. Pure."""

from typing import Any

from api.completions.answer import calls_id, head
from api.completions.ends import error_of, finish_reason, is_cut
from api.completions.form import Form
from api.completions.logprobs import TextOffsets, chat_logprobs, completion_logprobs
from api.completions.tool_calls import CallDelta, ContentDelta, Delta, parser_for
from shared.protocol import EndEvent, Event, StartEvent, TokenEvent, Usage

Chunk = dict[str, Any]


class ChoiceChunks:
    """Fed with the events of one job."""

    def __init__(self, form: Form, call_id: str, created_s: int, index: int, job_id: str) -> None:
        self.job_id = job_id
        self.usage = Usage()
        self._form = form
        self._index = index
        self._head = head(form, call_id, created_s, is_chunk=True)
        self._parser = parser_for(form.tool_format, calls_id(call_id, index))
        self._offsets = TextOffsets()

    def feed(self, event: Event) -> list[Chunk]:
        """Raises the ``ServiceError`` of a job that gave no answer."""
        match event:
            case StartEvent():
                first = {"role": "assistant", "content": "", "refusal": None}
                return [self._chunk(first)] if self._form.is_chat else []
            case TokenEvent():
                return self._token(event)
            case EndEvent():
                return self._end(event)

    def _token(self, event: TokenEvent) -> list[Chunk]:
        if self._form.is_chat:
            pieces = [_delta(delta) for delta in self._parser.feed(event.text)]
            logprobs = chat_logprobs([event])
        else:
            pieces = [{"text": event.text}] if event.text else []
            logprobs = completion_logprobs([event], self._offsets)
        if logprobs is not None and not pieces:  # its text is held back, or it has none
            pieces = [{"content": ""} if self._form.is_chat else {"text": ""}]
        return [self._chunk(p, logprobs if i == 0 else None) for i, p in enumerate(pieces)]

    def _end(self, end: EndEvent) -> list[Chunk]:
        if error := error_of(end, f"job {self.job_id}"):
            raise error
        self.usage = end.usage
        chunks = [self._chunk(_delta(delta)) for delta in self._parser.finish(is_cut=is_cut(end))]
        last: Chunk = {} if self._form.is_chat else {"text": ""}
        return [*chunks, self._chunk(last, reason=finish_reason(end, self._parser.num_calls))]

    def _chunk(
        self, piece: Chunk, logprobs: Chunk | None = None, reason: str | None = None
    ) -> Chunk:
        content = {"delta": piece} if self._form.is_chat else piece
        choice = {
            "index": self._index,
            **content,
            "logprobs": logprobs,
            "finish_reason": reason,
        }
        return self._head | {"choices": [choice]}


def _delta(delta: Delta) -> Chunk:
    match delta:
        case ContentDelta():
            return {"content": delta.text}
        case CallDelta():
            call: Chunk = {"index": delta.index, "function": {"arguments": delta.arguments}}
            if delta.name is not None:
                call |= {"id": delta.id, "type": "function"}
                call["function"]["name"] = delta.name
            return {"tool_calls": [call]}
