"""How the events of ``GET /live`` look: ``history``, ``point`` and ``view``. Pure."""

from pydantic import BaseModel

from api.live.points import INTERVAL_S, Point
from api.live.view import View


class History(BaseModel):
    """Oldest first."""

    interval_s: int = INTERVAL_S
    points: list[Point]


def render_history(points: list[Point]) -> bytes:
    return _render("history", History(points=points))


def render_point(point: Point) -> bytes:
    return _render("point", point)


def render_view(view: View) -> bytes:
    return _render("view", view)


def _render(kind: str, event: BaseModel) -> bytes:
    return f"event: {kind}\ndata: {event.model_dump_json()}\n\n".encode()
