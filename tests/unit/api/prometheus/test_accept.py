import pytest

from api.prometheus.accept import wants_text

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "is_text"),
    [
        (PROMETHEUS, True),
        ("text/plain", True),
        ("application/openmetrics-text", True),
        ("", False),
        ("*/*", False),
        (BROWSER, False),
        ("application/json, text/plain;q=0.5", False),
        ("application/json;q=0.5, text/plain", True),
        ("text/plain;q=0", False),
        ("text/plain;q=x, */*", False),
    ],
)
def test_text_is_for_those_who_name_it(accept: str, is_text: bool) -> None:
    assert wants_text(accept) is is_text
