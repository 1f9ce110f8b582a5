"""What the OpenAPI document says of a gateway, without asking one."""

from typing import Any

import pytest

from api.app import create_app
from api.event_schema import event_stream
from api.examples import JOB_ID
from api.responses import Error, OpenAIError, refusals
from shared import errors
from shared.settings import load_settings

ERROR = {"$ref": "#/components/schemas/Error"}


def document(**settings: Any) -> dict[str, Any]:
    return create_app(load_settings(**settings)).openapi()


def operations(whole: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in whole["paths"].items()
        for method, operation in methods.items()
        if method != "parameters"
    }


def test_every_refusal_has_the_one_shape_and_an_example_of_it() -> None:
    whole = document()
    num_examples = 0
    for name, operation in operations(whole).items():
        refused = {s: r for s, r in operation["responses"].items() if s >= "4"}
        is_openai = name.split()[1].startswith("/v1/")
        kind, bad = (OpenAIError, "400") if is_openai else (Error, "422")
        assert {"413", bad, "431"} <= refused.keys(), name
        for status, response in refused.items():
            assert list(response["content"]) == ["application/json"], (name, status)
            content = response["content"]["application/json"]
            assert content["schema"] == {"$ref": f"#/components/schemas/{kind.__name__}"}
            for code, example in content["examples"].items():
                assert kind.model_validate(example["value"]).error.code == code
                num_examples += 1
    assert num_examples
    assert "HTTPValidationError" not in str(whole)
    assert {"Error", "ErrorInfo", "ErrorDetail"} <= whole["components"]["schemas"].keys()


def test_a_refusal_is_declared_with_its_status_its_codes_and_its_headers() -> None:
    declared = refusals(errors.QueueFull, errors.JobNotFound, errors.RateLimited)
    assert list(declared) == [404, 429]
    assert list(declared[429]["content"]["application/json"]["examples"]) == [
        "queue_full",
        "rate_limited",
    ]
    assert list(declared[429]["headers"]) == ["Retry-After"]
    assert "`job_not_found`: There is no job with this id" in declared[404]["description"]


def test_what_a_route_may_refuse_is_declared() -> None:
    found = {name: operation["responses"] for name, operation in operations(document()).items()}
    assert {"401", "403", "408", "409", "429", "503"} <= found["POST /generate"].keys()
    assert "404" in found["GET /jobs/{job_id}/stream"]
    assert "no_worker_ready" in found["GET /ready"]["503"]["description"]
    assert not {"401", "403", "429", "503"} & found["GET /health"].keys()


def test_every_response_has_a_request_id_and_every_route_takes_one() -> None:
    whole = document()
    for operation in operations(whole).values():
        for response in operation["responses"].values():
            assert "X-Request-Id" in response["headers"]
    for methods in whole["paths"].values():
        assert methods["parameters"] == [{"$ref": "#/components/parameters/X-Request-Id"}]


@pytest.mark.parametrize(
    ("keys", "keyed"),
    [
        ({}, set()),
        ({"metrics_key": "m"}, {"GET /metrics", "GET /metrics/prometheus"}),
        ({"api_keys": "a"}, None),
    ],
)
def test_a_key_is_asked_for_where_the_gateway_asks_for_one(
    keys: dict[str, str], keyed: set[str] | None
) -> None:
    found = operations(document(**keys))
    if keyed is None:
        keyed = found.keys() - {"GET /health", "GET /ready"}
    assert {name for name, operation in found.items() if operation["security"]} == keyed
    for name in keyed:
        assert found[name]["security"] == [{"Bearer": []}, {"ApiKey": []}]


def test_the_stream_has_its_content_type_and_its_events() -> None:
    responses = operations(document())["GET /jobs/{job_id}/stream"]["responses"]
    assert list(responses["200"]["content"]) == ["text/event-stream"]
    assert "content" not in responses["204"]
    content = event_stream()["text/event-stream"]
    assert [event["title"] for event in content["itemSchema"]["oneOf"]] == ["start", "token", "end"]
    assert content["example"].startswith("event: start\nid: 0\n")


def test_the_feed_has_its_content_type_and_its_events() -> None:
    feed = operations(document())["GET /live"]["responses"]["200"]["content"]
    assert list(feed) == ["text/event-stream"]
    events = feed["text/event-stream"]["itemSchema"]["oneOf"]
    assert [event["title"] for event in events] == ["history", "point", "view"]
    assert "$ref" not in str(events)
    assert feed["text/event-stream"]["example"].startswith("event: history\ndata: {")


def test_pages_for_people_are_not_in_the_document() -> None:
    assert not [path for path in document()["paths"] if path.startswith("/dashboard")]


def test_a_new_job_links_to_what_can_be_done_with_it() -> None:
    found = operations(document())
    names = {operation["operationId"] for operation in found.values()}
    for status in ("200", "202"):
        links = found["POST /generate"]["responses"][status]["links"]
        assert {"get_job", "stream_job", "cancel_job"} == links.keys() <= names
    assert JOB_ID in str(found["GET /jobs/{job_id}"]["parameters"])


def test_the_longest_wait_is_that_of_the_gateway() -> None:
    wait_s = operations(document(max_wait_s=15))["GET /jobs/{job_id}"]["parameters"][1]
    assert (wait_s["name"], wait_s["schema"]["maximum"]) == ("wait_s", 15)
    assert wait_s["schema"]["examples"] == [15]


def test_all_good_news_have_an_example() -> None:
    for name, operation in operations(document()).items():
        for status, response in operation["responses"].items():
            for content in response.get("content", {}).values():
                assert "example" in content or "examples" in content, (name, status)
