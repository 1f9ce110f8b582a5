"""The OpenAPI document as a whole: what FastAPI makes of the routes, and what it cannot know of a
gateway: its keys, its bounds, and what holds for every request and response."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api.access import needs_key
from api.batches.body import batch_body, file_form
from api.completions.body_schema import call_body
from api.completions.form import ENDPOINTS
from api.keyring import Keyring
from api.request_schema import request_body
from api.responses import error_schemas, header, restore_nulls
from api.token_bodies import TOKEN_PATHS, token_body
from api.warm_body import warm_body
from shared.settings import Settings

_DESCRIPTION = """An LLM service on CPUs: submit a job, follow its tokens, read its result.

Parameters and fields are honoured or refused by name, never ignored. All errors have the shape of
`Error`, under `/v1/` that of `OpenAIError`, also those that no route declares: `400` for what is not
HTTP, `404` (`not_found`) for a path that is not there, `405` for a method that a path does not take,
with `Allow`, and `500` (`internal_error`), which is a fault of the service. `HEAD` is answered as `GET`."""

_SCHEMES = {
    "Bearer": {"type": "http", "scheme": "bearer"},
    "ApiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
_ANY_KEY: list[dict[str, list[str]]] = [{name: []} for name in _SCHEMES]

_REQUEST_ID = "X-Request-Id"


def describe_in_openapi(app: FastAPI, settings: Settings, keyring: Keyring) -> None:
    """``/openapi.json`` and ``/docs`` are made of this document from now on."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app, settings, keyring)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI, settings: Settings, keyring: Keyring) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes
    )
    components = document["components"]
    for name in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(name, None)
    components["schemas"] |= error_schemas()
    components["securitySchemes"] = _SCHEMES
    components["headers"] = {_REQUEST_ID: header("the request's own, or one that was made for it")}
    components["parameters"] = {_REQUEST_ID: _request_id_parameter()}
    paths = document["paths"]
    for path, methods in paths.items():
        for operation in methods.values():
            _forget_fastapi_errors(operation["responses"])
            operation["security"] = _ANY_KEY if needs_key(keyring, path) else []
            for response in operation["responses"].values():
                ref = {"$ref": f"#/components/headers/{_REQUEST_ID}"}
                restore_nulls(response)
                response.setdefault("headers", {})[_REQUEST_ID] = ref
        methods["parameters"] = [{"$ref": f"#/components/parameters/{_REQUEST_ID}"}]
    paths["/generate"]["post"]["requestBody"] = request_body(settings)
    paths["/cache/warm"]["post"]["requestBody"] = warm_body(settings)
    for endpoint in ENDPOINTS:
        paths[endpoint]["post"]["requestBody"] = call_body(endpoint)
    for path in TOKEN_PATHS:
        paths[path]["post"]["requestBody"] = token_body(path, settings)
    paths["/v1/files"]["post"]["requestBody"] = file_form()
    paths["/v1/batches"]["post"]["requestBody"] = batch_body()
    longest_s = settings.max_wait_s
    wait_s = _parameter(paths["/jobs/{job_id}"]["get"], "wait_s")
    wait_s |= {"maximum": longest_s, "examples": [min(30, longest_s)]}
    return document


def _forget_fastapi_errors(responses: dict[str, Any]) -> None:
    """FastAPI declares its own 422 where a route has none: ours are 400 under ``/v1/``."""
    if "HTTPValidationError" in str(responses.get("422")):
        del responses["422"]


def _request_id_parameter() -> dict[str, Any]:
    return {
        "name": _REQUEST_ID,
        "in": "header",
        "required": False,
        "description": "Up to 128 letters, digits and `._:/+=@-`; names the request in logs and is "
        "returned. Another one is replaced, not refused.",
        "schema": {"type": "string"},
        "example": "trace-1",
    }


def _parameter(operation: dict[str, Any], name: str) -> dict[str, Any]:
    """Its schema."""
    found: dict[str, Any] = next(p for p in operation["parameters"] if p["name"] == name)["schema"]
    return found
