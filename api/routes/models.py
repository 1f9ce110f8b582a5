"""``GET /v1/models``: what there is to ask for."""

from typing import Literal

from fastapi import APIRouter, Path
from pydantic import BaseModel

from api import examples
from api.deps import GatewayDep
from api.responses import KEYED_ROUTE, openai_refusals
from api.served_models import ServedModel
from shared.errors import ModelNotFound

router = APIRouter()


class Model(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int  #: nobody knows; OpenAI's clients want a number
    owned_by: str = "mini-vllm"
    context_tokens: int | None  #: null while no worker has told it
    workers: int
    ready: int
    is_default: bool
    calls_tools: bool


class Models(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


def _shown(model: ServedModel) -> Model:
    return Model(
        id=model.name,
        created=0,
        context_tokens=model.context_tokens or None,
        workers=model.workers,
        ready=model.ready,
        is_default=model.is_own,
        calls_tools=model.tool_format is not None,
    )


@router.get(
    "/v1/models",
    summary="List the models that can be asked for",
    responses=openai_refusals(*KEYED_ROUTE, others={200: examples.shown(examples.MODELS)}),
)
async def list_models(gateway: GatewayDep) -> Models:
    """The gateway's own first; its other name is `default`. Then those that other workers serve."""
    models = await gateway.models.models()
    return Models(data=[_shown(model) for model in models.values()])


@router.get(
    "/v1/models/{model:path}",
    name="get_model",
    summary="One of the models",
    responses=openai_refusals(
        *KEYED_ROUTE, ModelNotFound, others={200: examples.shown(examples.MODEL)}
    ),
)
async def get_model(
    gateway: GatewayDep,
    model: str = Path(description="as in a request", examples=["default"]),
) -> Model:
    return _shown(await gateway.models.find(model))
