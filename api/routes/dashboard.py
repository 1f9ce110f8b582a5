"""``GET /dashboard``: the page, what it is made of, and the experiments' reports.

The page and its files are open, since a browser's address bar has no key; what it shows is not.
"""

from collections.abc import Mapping

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from api.deps import GatewayDep
from api.page_files import INDEX, REPORT_HEADERS, PageFile
from shared.errors import RouteNotFound

#: Pages for people: they are no part of the API that OpenAPI describes.
router = APIRouter(include_in_schema=False)


@router.get("/dashboard")
async def get_dashboard(request: Request) -> Response:
    return _file(request, INDEX)


@router.get("/dashboard/")
async def leave_folder() -> Response:
    """The page names its files from one level above."""
    return RedirectResponse("../dashboard", status_code=308)


@router.get("/dashboard/static/{name:path}")
async def get_dashboard_file(name: str, request: Request) -> Response:
    return _file(request, name)


@router.get("/dashboard/reports/{name}/report.html")
async def get_report(name: str, gateway: GatewayDep) -> Response:
    """Needs a key, where keys are set: the page fetches it."""
    body = await run_in_threadpool(gateway.reports.read, name)
    return HTMLResponse(body, headers=REPORT_HEADERS)


def _file(request: Request, name: str) -> Response:
    files: Mapping[str, PageFile] = request.app.state.page_files
    if name not in files:
        raise RouteNotFound
    return files[name].response(request.headers)
