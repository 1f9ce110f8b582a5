import pytest
from pydantic import BaseModel

from api import examples
from api.job_view import JobView
from api.live.points import Point
from api.live.view import View
from api.metrics_view import Metrics
from api.routes.generate import Accepted
from api.routes.jobs import JobPage
from api.routes.metrics import Workers
from api.routes.status import Alive, Description, Ready
from api.routes.tokens import Content, Prompt, Tokens


@pytest.mark.parametrize(
    ("model", "example"),
    [
        (Accepted, examples.ACCEPTED),
        (JobView, examples.JOB),
        (JobView, examples.CANCELLING),
        (JobPage, examples.PAGE),
        (Workers, examples.WORKERS),
        (Metrics, examples.METRICS),
        (Description, examples.DESCRIPTION),
        (Alive, examples.ALIVE),
        (Tokens, examples.TOKENS),
        (Content, examples.CONTENT),
        (Prompt, examples.PROMPT),
        (Ready, examples.READY),
        (Point, examples.POINT),
        (View, examples.VIEW),
    ],
)
def test_an_example_is_what_its_route_could_answer(
    model: type[BaseModel], example: dict[str, object]
) -> None:
    """Nothing in it is unknown to the model, and the model reads all of it as it stands."""
    whole = model.model_validate(example).model_dump(mode="json")
    assert _kept(example, whole) == example


def _kept(example: object, whole: object) -> object:
    """Of what the model gives back, what the example has."""
    if isinstance(example, dict) and isinstance(whole, dict):
        return {name: _kept(value, whole.get(name)) for name, value in example.items()}
    if isinstance(example, list) and isinstance(whole, list):
        return [_kept(*pair) for pair in zip(example, whole, strict=True)]
    return whole
