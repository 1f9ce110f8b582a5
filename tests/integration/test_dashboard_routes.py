"""The page and what belongs to it, as a browser asks for them."""

from pathlib import Path

import httpx
import pytest
from redis import Redis

from api.page_files import FOLDER
from tests.gateway import RunningGateway
from tests.integration.conftest import MODEL
from tests.integration.test_gateway_access import closed  # noqa: F401  (a fixture)
from tests.servers import Valkey


def test_the_page_and_its_files_need_no_key(closed: RunningGateway) -> None:  # noqa: F811
    with closed.client() as http:
        page = http.get("/dashboard")
        assert page.status_code == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.content == (FOLDER / "index.html").read_bytes()
        for path in sorted(FOLDER.rglob("*.js")):
            name = path.relative_to(FOLDER).as_posix()
            script = http.get(f"/dashboard/static/{name}")
            assert script.status_code == 200, name
            assert script.headers["content-type"].startswith("text/javascript")
        folder = http.get("/dashboard/", follow_redirects=True)
        assert (folder.url.path, folder.status_code) == ("/dashboard", 200)


@pytest.mark.parametrize("path", ["/dashboard", "/dashboard/static/style.css"])
def test_a_page_is_shielded_and_asked_for_once(http: httpx.Client, path: str) -> None:
    first = http.get(path)
    policy = first.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert first.headers["x-content-type-options"] == "nosniff"
    assert first.headers["referrer-policy"] == "no-referrer"
    assert first.headers["x-frame-options"] == "DENY"
    again = http.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "name",
    [
        "nothing.js",
        "%2e%2e/page_files.py",
        "..%2fpage_files.py",
        "vendor",
        "",
        "%2fetc%2fpasswd",
        "index.html%00",
    ],
)
def test_nothing_else_is_there(http: httpx.Client, name: str) -> None:
    response = http.get(f"/dashboard/static/{name}")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")


def test_a_page_takes_no_parameter(http: httpx.Client) -> None:
    response = http.get("/dashboard?key=secret")
    assert (response.status_code, response.json()["error"]["field"]) == (422, "key")


def test_the_page_is_there_without_redis(valkey: Valkey) -> None:
    gateway = RunningGateway(valkey.url, model=MODEL).start()
    try:
        valkey.stop()
        assert httpx.get(f"{gateway.url}/dashboard").status_code == 200
    finally:
        gateway.stop()


def test_a_report_is_for_those_with_a_key_and_runs_nothing(
    valkey_url: str, flushed: Redis, tmp_path: Path
) -> None:
    folder = tmp_path / "experiments/results/my host"
    folder.mkdir(parents=True)
    (folder / "report.html").write_text("<h1>Figures</h1>")
    gateway = RunningGateway(valkey_url, model=MODEL, api_keys="alice", data_dir=tmp_path).start()
    path = "/dashboard/reports/my%20host/report.html"
    try:
        with gateway.client() as http:
            assert http.get(path).status_code == 401
            http.headers["Authorization"] = "Bearer alice"
            report = http.get(path)
            assert (report.status_code, report.text) == (200, "<h1>Figures</h1>")
            assert "sandbox" in report.headers["content-security-policy"]
            assert report.headers["content-type"] == "text/html; charset=utf-8"
            other = http.get("/dashboard/reports/other/report.html")
            assert (other.status_code, other.json()["error"]["code"]) == (404, "not_found")
    finally:
        gateway.stop()
