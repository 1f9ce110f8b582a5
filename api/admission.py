"""Whether the model that a request asks for can run it: what is certain is said before it waits. Pure."""

from api.bounds import check_bounds
from api.served_models import ServedModel
from api.validation import InvalidRequest, Problem
from shared.errors import NoWorkerReady, PromptTooLong, UnsupportedParameter
from shared.protocol import GenerateRequest
from shared.settings import Settings


def check_request(
    request: GenerateRequest,
    model: ServedModel,
    settings: Settings,
    *,
    ids_field: str = "prompt_token_ids",
    text_field: str | None = None,
) -> None:
    """Raises ``BadRequest``. ``ids_field`` is the field in which the tokens of the prompt came, and
    ``text_field`` that of its text or messages, if its name is another one."""
    check_bounds(request, settings)
    _check_fit(request, model, ids_field, text_field)
    _check_vocabulary(request, model, ids_field)
    if request.calls_tools:
        check_tools(model)


def _check_fit(
    request: GenerateRequest, model: ServedModel, ids_field: str, text_field: str | None
) -> None:
    """A token has ``max_piece_bytes`` at most. Templates may drop spaces around what is said."""
    if not model.context_tokens or not model.max_piece_bytes:
        return
    if request.prompt_token_ids is not None:
        field, least, how = ids_field, len(request.prompt_token_ids), "has"
    else:
        field = text_field or ("prompt" if request.prompt is not None else "messages")
        num_bytes = len((request.prompt or "").strip().encode()) + sum(
            len((message.content or "").strip().encode()) for message in request.messages or ()
        )
        least, how = -(-num_bytes // model.max_piece_bytes), "has at least"
    if least >= model.context_tokens:
        raise PromptTooLong(
            f"{field}: {how} {least} tokens; the context of the model {model.name} holds "
            f"{model.context_tokens}, with the answer",
            field=field,
        )


def _check_vocabulary(request: GenerateRequest, model: ServedModel, ids_field: str) -> None:
    if not model.num_vocab:
        return
    for field, tokens in (
        ("logit_bias", request.logit_bias),
        (ids_field, request.prompt_token_ids or ()),
    ):
        highest = max(tokens, default=0)
        if highest >= model.num_vocab:
            words = f"{field}: the model {model.name} has {model.num_vocab} tokens, from 0 (got {highest})"
            raise InvalidRequest([Problem(field, words)])


def check_tools(model: ServedModel) -> None:
    """Raises ``UnsupportedParameter``, or ``NoWorkerReady`` where it is not known."""
    if model.tool_format is not None:
        return
    if not model.ready:
        raise NoWorkerReady(
            f"No worker of the model {model.name} is ready, so it is not known whether it calls tools."
        )
    raise UnsupportedParameter(
        f"tools: the model {model.name} has no template for calls of tools", field="tools"
    )
