"""Shows a service: once, or until Ctrl-C, through restarts of its gateway."""

import io
import json
import signal
import sys
import time
from typing import Any

from rich.console import Console
from rich.live import Live

from cli.service import make_client
from cli.top.feed import Follower, read_picture
from cli.top.frame import Screen, frame, headline
from cli.top.picture import Picture
from cli.top.sections import Style

#: Times go on even where nothing is new.
_REFRESH_S = 1.0
#: More often nobody can read.
_MIN_PAUSE_S = 0.25


def show_once(url: str, api_key: str | None, *, as_json: bool) -> None:
    """Raises ``RequestFailed``."""
    with make_client(url, api_key) as client:
        picture = read_picture(client, time.time())
    if as_json:
        print(json.dumps(_as_json(picture), indent=1))
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    console = Console(highlight=False)
    console.print(frame(picture, _screen(console, url), time.time()))


def watch(url: str, api_key: str | None) -> None:
    """Until Ctrl-C, which is how one leaves it. Raises ``RequestFailed`` if there is nothing to see."""
    _end_tidily_on_sigterm()
    console = Console(highlight=False)
    client = make_client(url, api_key)  # a thread reads from it until the process ends
    picture = read_picture(client, time.time())
    follower = Follower(client)
    follower.start()
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                now_s = time.time()
                live.update(frame(picture, _screen(console, url), now_s), refresh=True)
                time.sleep(_MIN_PAUSE_S)
                for news in follower.take(_REFRESH_S - _MIN_PAUSE_S):
                    picture = picture.with_news(news, time.time())
    except KeyboardInterrupt:
        pass
    finally:
        follower.stop()


def _screen(console: Console, url: str) -> Screen:
    width, height = console.size
    return Screen(url, height, Style.of(width, console.encoding))


def _as_json(picture: Picture) -> dict[str, Any]:
    """The view as the gateway gives it, what follows from it, and the last hour."""
    verdict = headline(picture, picture.heard_s)
    found = {"level": verdict.level, "text": verdict.text, "action": verdict.action}
    return {"verdict": found, **(picture.view or {}), "points": list(picture.points or ())}


def _end_tidily_on_sigterm() -> None:
    """The terminal is given back as it was."""

    def end(number: int, _: object) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)
