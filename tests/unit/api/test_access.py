import pytest
from starlette.datastructures import Headers

from api.access import authorize, presented_key
from api.keyring import ANYBODY, Keyring
from shared.errors import Forbidden, Unauthorized
from shared.settings import load_settings

CLOSED = Keyring.from_settings(load_settings(api_keys="u", admin_keys="a", metrics_key="m"))
OPEN = Keyring.from_settings(load_settings())
OPEN_WITH_METRICS_KEY = Keyring.from_settings(load_settings(metrics_key="m"))

PATHS = (
    *("/", "/generate", "/jobs", "/jobs/x", "/metrics", "/workers", "/docs", "/openapi.json"),
    *("/live", "/dashboard/reports/x/report.html"),
)
OPEN_PAGES = (
    "/dashboard",
    "/dashboard/",
    "/dashboard/static/app.js",
    "/dashboard/static/vendor/x.css",
)


@pytest.mark.parametrize("path", [*PATHS, "/nowhere", "//health", "/health/"])
@pytest.mark.parametrize("key", [None, "", "wrong"])
def test_nothing_but_health_is_there_without_a_key(path: str, key: str | None) -> None:
    with pytest.raises(Unauthorized):
        authorize(CLOSED, path, key)
    assert authorize(CLOSED, "/health", key) is ANYBODY
    assert authorize(CLOSED, "/ready", key) is ANYBODY


@pytest.mark.parametrize("path", OPEN_PAGES)
@pytest.mark.parametrize("key", [None, "", "wrong", "u", "m"])
def test_the_page_is_open_since_it_is_what_asks_for_the_key(path: str, key: str | None) -> None:
    assert authorize(CLOSED, path, key) is ANYBODY


@pytest.mark.parametrize(
    "path", ["/dashboard/x", "/dashboard/static", "/dashboards", "//dashboard"]
)
def test_what_only_looks_like_the_page_is_not_open(path: str) -> None:
    with pytest.raises(Unauthorized):
        authorize(CLOSED, path, None)


@pytest.mark.parametrize("path", PATHS)
def test_an_admin_may_go_anywhere_and_a_user_not_to_the_pool(path: str) -> None:
    assert authorize(CLOSED, path, "a")
    if path in ("/metrics", "/workers"):
        with pytest.raises(Forbidden, match="ADMIN_KEYS"):
            authorize(CLOSED, path, "u")
    else:
        assert authorize(CLOSED, path, "u").owner


@pytest.mark.parametrize("path", PATHS)
def test_the_metrics_key_reads_the_metrics_and_nothing_else(path: str) -> None:
    if path == "/metrics":
        assert authorize(CLOSED, path, "m")
    else:
        with pytest.raises(Forbidden):
            authorize(CLOSED, path, "m")


@pytest.mark.parametrize("path", PATHS)
def test_without_keys_all_is_open_but_metrics_that_have_their_own(path: str) -> None:
    assert authorize(OPEN, path, None) is ANYBODY
    assert authorize(OPEN, path, "anything") is ANYBODY
    if path == "/metrics":
        with pytest.raises(Unauthorized):
            authorize(OPEN_WITH_METRICS_KEY, path, None)
        assert authorize(OPEN_WITH_METRICS_KEY, path, "m")
    else:
        assert authorize(OPEN_WITH_METRICS_KEY, path, None) is ANYBODY


def test_a_key_is_presented_in_two_ways() -> None:
    assert presented_key(Headers({"authorization": "Bearer k"})) == "k"
    assert presented_key(Headers({"authorization": "bearer  k "})) == "k"
    assert presented_key(Headers({"x-api-key": "k"})) == "k"
    assert presented_key(Headers({"authorization": "bearer\tk"})) == "k"
    assert presented_key(Headers({})) is None


@pytest.mark.parametrize("name", [b"authorization", b"x-api-key"])
def test_two_keys_are_refused(name: bytes) -> None:
    """A proxy in front may have read the other one."""
    headers = Headers(raw=[(name, b"Bearer a"), (name, b"Bearer b")])
    with pytest.raises(Unauthorized, match="once"):
        presented_key(headers)


@pytest.mark.parametrize("value", ["Basic dTpw", "Bearer", "Bearer ", "k", ""])
def test_another_scheme_is_refused_by_name(value: str) -> None:
    with pytest.raises(Unauthorized) as refused:
        presented_key(Headers({"authorization": value}))
    assert refused.value.field == "Authorization"
