"""Query parameters are honoured or refused by name: a typo would otherwise change what is answered."""

from fastapi import Request

from shared.errors import BadRequest

#: By method and route; what is not here takes none.
KNOWN_PARAMETERS = {
    ("GET", "/jobs"): {"limit", "before"},
    ("GET", "/jobs/{job_id}"): {"wait_s"},
    ("GET", "/jobs/{job_id}/stream"): {"from"},
    ("GET", "/v1/files"): {"purpose", "limit", "order", "after"},
    ("GET", "/v1/batches"): {"limit", "after"},
}


def refuse_unknown_parameters(request: Request) -> None:
    method = "GET" if request.method == "HEAD" else request.method
    known = KNOWN_PARAMETERS.get((method, request.scope["route"].path), set())
    for name in request.query_params:
        if name not in known:
            takes = f"; it takes {', '.join(sorted(known))}" if known else ""
            raise BadRequest(f"unknown query parameter `{name}`{takes}", field=name)
