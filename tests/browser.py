"""A real browser on the dashboard, and what must never happen in one: an error, or a request elsewhere."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

#: What a browser says by itself of an answer that is an error, or of none.
_FAILED_REQUEST = re.compile(r"Failed to load resource|net::ERR_")
DEADLINE_MS = 30_000


@contextmanager
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def dashboard(
    browser: Browser, url: str, *, may_fail: bool = False, width: int = 1280, scheme: str = "light"
) -> Iterator[Page]:
    """``may_fail``: requests may be refused, or find nobody; the page's own code may complain of nothing."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.set_default_timeout(DEADLINE_MS)
    complaints: list[str] = []
    hosts: set[str] = set()
    page.on(
        "console",
        lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    try:
        page.goto(f"{url}/dashboard")
        yield page
        if may_fail:
            complaints = [text for text in complaints if not _FAILED_REQUEST.search(text)]
        assert complaints == []
        assert hosts == {urlsplit(url).netloc}
    finally:
        context.close()


def part(page: Page, within: str, name: str) -> str:
    """The text of a figure, found by its name."""
    return page.locator(f'{within} [data-part="{name}"]').inner_text()


def totals(page: Page) -> dict[str, str]:
    return {
        str(shown.get_attribute("data-key")): shown.locator("dd").inner_text().replace(",", "")
        for shown in page.locator("#totals > div").all()
    }


def give_key(page: Page, key: str) -> None:
    page.locator("#key-dialog[open]").wait_for()
    page.fill("#key-input", key)
    page.click("#key-form button")


def say(page: Page, text: str) -> str:
    """What the playground answers, once it is whole."""
    num_answers = page.locator(".bubble.assistant").count()
    page.fill("#chat-text", text)
    page.click("#chat-send")
    page.locator(".bubble.assistant").nth(num_answers).wait_for()
    page.wait_for_function(
        "() => / as job /.test(document.getElementById('chat-figures').textContent)"
        " && document.getElementById('chat-stop').disabled"
    )
    return page.locator(".bubble.assistant").nth(num_answers).inner_text()
