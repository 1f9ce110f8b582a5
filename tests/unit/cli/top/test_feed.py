"""What a feed's answers mean: news, a break that may pass, or the end."""

import json

import httpx
import pytest

from cli.service import RequestFailed
from cli.top.feed import Away, Follower, read_feed, read_picture
from tests.unit.cli.recorded import point, view

HISTORY = {"interval_s": 10, "points": [point(10)]}


def events(*pairs: tuple[str, object]) -> str:
    text = ": keep-alive\n\n"
    return text + "".join(f"event: {kind}\ndata: {json.dumps(body)}\n\n" for kind, body in pairs)


def client(*answers: httpx.Response | httpx.TransportError) -> httpx.Client:
    """One after the other."""
    left = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/live"
        found = left.pop(0)
        if isinstance(found, httpx.TransportError):
            raise found
        return found

    return httpx.Client(base_url="http://x", transport=httpx.MockTransport(answer))


def test_a_picture_is_read_as_soon_as_it_is_whole() -> None:
    feed = events(("history", HISTORY), ("view", view()), ("view", view(running=9)))
    with client(httpx.Response(200, text=feed)) as http:
        picture = read_picture(http, 7.0)
    assert (picture.view, picture.points) == (view(), (point(10),))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(503, json={"error": {"message": "Redis is away."}}), "Redis is away"),
        (httpx.ReadError("broken"), "broken"),
        (httpx.ConnectError("refused"), "nothing answers at http://x"),
        (httpx.Response(200, text=events(("view", view()))), "ended the feed"),
    ],
)
def test_what_may_pass_is_a_break(
    answer: httpx.Response | httpx.TransportError, words: str
) -> None:
    with client(answer) as http, pytest.raises(Away, match=words):
        list(read_feed(http))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(404, json={}), "older gateway"),
        (httpx.Response(401, json={"error": {"message": "An API key is needed."}}), "API key"),
        (httpx.Response(200, text="event: view\ndata: {\n\n"), "not the feed"),
    ],
)
def test_where_coming_again_is_no_use_it_ends(answer: httpx.Response, words: str) -> None:
    with client(answer) as http, pytest.raises(RequestFailed, match=words) as raised:
        list(read_feed(http))
    assert not isinstance(raised.value, Away)


def test_who_follows_comes_again_after_a_break_and_hears_of_the_end() -> None:
    first = httpx.Response(200, text=events(("view", view())))
    second = httpx.Response(200, text=events(("point", point(0))))
    kinds: list[str] = []
    with client(first, second, httpx.Response(404, json={})) as http:
        follower = Follower(http)
        follower.start()
        with pytest.raises(RequestFailed, match="older gateway"):
            while True:
                kinds += [news.kind for news in follower.take(10.0)]
        follower.stop()
    assert kinds[:2] == ["view", "away"]
    assert "point" in kinds
