"""The gateway's live feed: news as it comes, again after every break. Knows nothing of what is shown."""

import json
import queue
import threading
from collections.abc import Iterator

import httpx

from cli.asking import nothing_answers
from cli.service import RETRY_PAUSE_S, RequestFailed, message_of
from cli.sse import lines_of, read_events
from cli.top.picture import News, Picture

_PATH = "/live"


class Away(RequestFailed):
    """The service does not answer now; it may be back in a moment."""


def read_feed(client: httpx.Client) -> Iterator[News]:
    """Of one connection. Raises ``Away`` when it breaks, ``RequestFailed`` where coming again is no use."""
    try:
        with client.stream("GET", _PATH) as response:
            if response.status_code >= 500 or response.status_code == 429:
                response.read()
                raise Away(message_of(response))
            if response.status_code == httpx.codes.NOT_FOUND:
                raise RequestFailed(f"{client.base_url} has no {_PATH}: is it an older gateway?")
            if response.status_code != httpx.codes.OK:
                response.read()
                raise RequestFailed(message_of(response))
            for event in read_events(lines_of(response.iter_text())):
                yield News(event.event, json.loads(event.data))
    except httpx.ConnectError:
        raise Away(nothing_answers(client)) from None
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise RequestFailed(f"{client.base_url}: {error}") from None
    except httpx.TransportError as error:
        raise Away(f"{client.base_url}: {error or type(error).__name__}") from None
    except (ValueError, KeyError):
        raise RequestFailed(f"{client.base_url}{_PATH} is not the feed of a gateway") from None
    raise Away("the gateway ended the feed")


def read_picture(client: httpx.Client, now_s: float) -> Picture:
    """The first whole one. Raises ``RequestFailed``."""
    picture = Picture()
    for news in read_feed(client):
        picture = picture.with_news(news, now_s)
        if picture.is_whole:
            break
    return picture


class Follower:
    """A thread that reads, so that who shows it can do so between two pieces of news, too."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._news: queue.Queue[News | RequestFailed] = queue.Queue()
        self._has_stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Without waiting for the connection, which may be silent: the process ends anyway."""
        self._has_stopped.set()

    def take(self, timeout_s: float) -> list[News]:
        """What has come; waits for the first. Raises ``RequestFailed`` when there will be no more."""
        found: list[News] = []
        try:
            entry = self._news.get(timeout=timeout_s)
            while True:
                if isinstance(entry, RequestFailed):
                    raise entry
                found.append(entry)
                entry = self._news.get_nowait()
        except queue.Empty:
            return found

    def _run(self) -> None:
        while not self._has_stopped.is_set():
            try:
                for news in read_feed(self._client):
                    self._news.put(news)
            except Away as away:
                self._news.put(News("away", away.message))
            except RequestFailed as failed:
                self._news.put(failed)
                return
            self._has_stopped.wait(RETRY_PAUSE_S)
