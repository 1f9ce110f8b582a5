"""Which methods a path takes, for ``Allow``.

The router knows of the first route alone that has the path, and so would leave out DELETE of a job.
"""

from collections.abc import Iterable

from starlette.routing import BaseRoute, Match
from starlette.types import Scope

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> list[str]:
    routes = list(routes)
    return [
        method
        for method in _METHODS
        if any(route.matches(dict(scope, method=method))[0] is Match.FULL for route in routes)
    ]
