"""Text to tokens and back, and a chat as a prompt, as llama-server has them: a worker answers at once."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from api import examples
from api.admission import check_tools
from api.bounds import check_question
from api.deps import Gateway, GatewayDep
from api.responses import KEYED_ROUTE, refusals
from api.validation import parse_body
from shared.asks import Answer, ApplyTemplate, Detokenize, Piece, Question, Tokenize
from shared.errors import (
    BodyTimedOut,
    ModelNotFound,
    NoChatTemplate,
    NoWorkerReady,
    Overloaded,
    Unavailable,
)

router = APIRouter()

_REFUSALS = (
    *KEYED_ROUTE,
    BodyTimedOut,
    ModelNotFound,
    NoWorkerReady,
    Overloaded,
    Unavailable,
)


class Tokens(BaseModel):
    tokens: tuple[int, ...] | tuple[Piece, ...]


class Content(BaseModel):
    content: str


class Prompt(BaseModel):
    prompt: str


def _responses(example: dict[str, Any], *more: Any) -> Any:
    return refusals(*_REFUSALS, *more, others={200: examples.shown(example)})


async def _answer(request: Request, gateway: Gateway, kind: type[Question]) -> Answer:
    question: Question = parse_body(kind, await request.body())
    check_question(question, gateway.settings)
    model = await gateway.models.find(question.model)
    if isinstance(question, ApplyTemplate) and question.tools is not None:
        check_tools(model)
    return await gateway.asking.ask(model.name, question)


@router.post("/tokenize", summary="Text to tokens", responses=_responses(examples.TOKENS))
async def tokenize(request: Request, gateway: GatewayDep) -> Tokens:
    """As llama-server's. A worker answers beside its jobs. With `with_pieces`, a token is
    `{"id", "piece"}`, and `piece` a list of bytes where it is no text by itself."""
    answer = await _answer(request, gateway, Tokenize)
    if answer.pieces is not None:
        return Tokens(tokens=answer.pieces)
    return Tokens(tokens=answer.tokens or ())


@router.post("/detokenize", summary="Tokens to text", responses=_responses(examples.CONTENT))
async def detokenize(request: Request, gateway: GatewayDep) -> Content:
    """As llama-server's, special tokens included. What is no UTF-8 becomes U+FFFD."""
    return Content(content=(await _answer(request, gateway, Detokenize)).text or "")


@router.post(
    "/apply-template",
    summary="A chat as the prompt that the model would get",
    responses=_responses(examples.PROMPT, NoChatTemplate),
)
async def apply_template(request: Request, gateway: GatewayDep) -> Prompt:
    """As llama-server's. Nothing is generated. `tools` for models whose template knows them."""
    return Prompt(prompt=(await _answer(request, gateway, ApplyTemplate)).text or "")
