"""The dashboard as somebody on call has it: a browser, a real pool, and figures that must be true."""

import re
import signal
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from shared.histograms import bucket_of
from tests.browser import DEADLINE_MS, chromium, dashboard, give_key, part, say, totals
from tests.service import Up, wait_until

USER_KEY, ADMIN_KEY = "mv-user-key-51ce", "mv-admin-key-0b7d"
LONG = {"prompt": "Count", "max_tokens": 900, "ignore_eos": True}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Its own: its gateway is killed."""
    up = Up(tmp_path_factory.mktemp("up"), "--workers", "2", "--threads", "1")
    try:
        yield up.wait_ready()
    finally:
        up.stop()


@pytest.fixture
def page(browser: Browser, pool: Up) -> Iterator[Page]:
    with dashboard(browser, pool.url) as page:
        page.locator("#connection[data-state=live]").wait_for()
        yield page


@pytest.fixture
def client(pool: Up) -> Iterator[httpx.Client]:
    with pool.client() as client:
        yield client


def ended(client: httpx.Client, job_id: str) -> dict[str, Any]:
    job: dict[str, Any] = client.get(f"/jobs/{job_id}?wait_s=30").json()
    assert job["status"] not in ("queued", "running")
    return job


def shown_s(text: str) -> float:
    """A duration as the page writes it."""
    number, unit = text.split()
    return float(number) / (1000 if unit == "ms" else 1)


def is_shown(text: str, duration_s: float) -> bool:
    """To three digits, however the last one is rounded."""
    return shown_s(text) == pytest.approx(duration_s, rel=0.005, abs=0.0005)


def test_it_shows_both_workers_and_says_first_that_nobody_waits(
    page: Page, client: httpx.Client
) -> None:
    for worker in client.get("/workers").json()["workers"]:
        card = f'[data-worker="{worker["name"]}"]'
        assert part(page, card, "state") == "ready"
        (core,) = worker["cores"]
        assert part(page, card, "what").startswith(f"core {core} · 1 thread")
        assert part(page, card, "slots") == f"0 of {worker['slots']}"
    assert page.locator("[data-worker]").count() == 2
    assert page.locator("#verdict").get_attribute("data-level") == "good"
    assert "2 workers ready" in page.locator("#verdict-text").inner_text()
    assert page.locator("#model").inner_text() == client.get("/").json()["model"]
    assert page.locator("figure canvas").count() == 6


def test_a_chat_is_answered_and_goes_on_and_its_figures_are_the_jobs(
    page: Page, client: httpx.Client
) -> None:
    page.fill("#chat-temperature", "0")
    page.fill("#chat-max-tokens", "24")
    page.fill("#chat-seed", "7")
    page.fill("#chat-system", "You are a pirate.")
    first, second = say(page, "Who are you?"), say(page, "And where do you live?")
    ids = [
        str(bubble.get_attribute("data-job-id"))
        for bubble in page.locator(".bubble.assistant").all()
    ]
    jobs = [ended(client, job_id) for job_id in ids]
    assert [job["text"].strip() for job in jobs] == [first.strip(), second.strip()]
    assert [job["seed"] for job in jobs] == [7, 7]
    assert jobs[1]["usage"]["prompt_tokens"] > jobs[0]["usage"]["prompt_tokens"]
    timings, usage = jobs[1]["timings"], jobs[1]["usage"]
    figures = page.locator("#chat-figures").inner_text()
    first_token = re.match(r"First token after ([\d.]+ \w+)", figures)
    assert first_token
    assert is_shown(first_token[1], timings["ttft_s"])
    assert f"{usage['completion_tokens']} tokens in" in figures
    assert f"as job {ids[1][:8]}" in figures
    for bubble, job in zip(page.locator(".bubble.assistant").all(), jobs, strict=True):
        seen_s = float(str(bubble.get_attribute("data-ttft-s")))
        assert seen_s >= job["timings"]["ttft_s"]
        assert bucket_of("ttft", seen_s) - bucket_of("ttft", job["timings"]["ttft_s"]) <= 1
    for job in jobs:
        row = f'tr.own[data-job="{job["job_id"]}"]'
        page.locator(f'{row} [data-state="completed"]').wait_for()
        assert part(page, row, "prompt") == str(job["usage"]["prompt_tokens"])
        assert part(page, row, "answer") == str(job["usage"]["completion_tokens"])
        assert is_shown(part(page, row, "total"), job["timings"]["total_s"])


def test_a_chat_that_is_stopped_ends_its_job(page: Page, client: httpx.Client) -> None:
    page.fill("#chat-max-tokens", "900")
    page.fill("#chat-text", "Write a very long story about the sea, with many chapters.")
    page.press("#chat-text", "Enter")
    page.locator(".bubble.assistant[data-ttft-s]").wait_for()
    page.click("#chat-stop")
    page.locator(".bubble.assistant", has_text="(stopped)").wait_for()
    job_id = str(page.locator(".bubble.assistant").get_attribute("data-job-id"))
    assert ended(client, job_id)["status"] == "cancelled"


def test_what_the_service_refuses_is_said_by_name(browser: Browser, pool: Up) -> None:
    with dashboard(browser, pool.url, may_fail=True) as page:
        page.fill("#chat-max-tokens", "8")
        page.fill("#chat-text", "long " * 3000)
        page.click("#chat-send")
        page.locator(".bubble .error", has_text="context").wait_for()
        assert page.locator("#chat-send").is_enabled()


def test_a_job_is_cancelled_by_its_button(page: Page, client: httpx.Client) -> None:
    job_id = client.post("/generate", json=LONG).json()["job_id"]
    row = f'tr[data-job="{job_id}"]'
    page.click(f"{row} button")
    page.locator(f'{row} [data-state="cancelled"]').wait_for()
    assert ended(client, job_id)["status"] == "cancelled"
    assert page.locator(f"{row} button").is_hidden()


def test_totals_are_those_of_the_metrics_and_percentiles_those_of_the_jobs(
    page: Page, client: httpx.Client
) -> None:
    for seed in range(3):
        body = {"prompt": "Hello", "max_tokens": 12, "seed": seed}
        ended(client, client.post("/generate", json=body).json()["job_id"])

    def agree() -> bool:
        metrics, shown = client.get("/metrics").json(), totals(page)
        return (
            shown
            | {
                "completed": str(metrics["jobs"]["completed"]),
                "failed": str(metrics["jobs"]["failed"]),
                "cancelled": str(metrics["jobs"]["cancelled"]),
                "generated": str(metrics["total_tokens_generated"]),
                "prompt": str(metrics["prompt_tokens_total"]),
                "running": "0",
                "queued": "0",
            }
            == shown
        )

    wait_until(agree, 20, "the page has the totals of /metrics")
    for name, title in (("ttft", "Time to first token"), ("e2e", "Time of a whole answer")):
        median = page.locator("figure", has_text=title).locator("b").first
        expect(median).to_have_text(re.compile(r"^\d"), timeout=DEADLINE_MS)
        field = {"ttft": "ttft_s", "e2e": "total_s"}[name]
        measured = [job["timings"].get(field) for job in client.get("/jobs").json()["jobs"]]
        known = [bucket_of(name, duration_s) for duration_s in measured if duration_s]
        assert min(known) <= bucket_of(name, shown_s(median.inner_text())) <= max(known)


def test_what_others_write_is_shown_as_text(page: Page, client: httpx.Client) -> None:
    name = "<img src=x onerror=alert(1)><b>Eve</b>"
    body = {"prompt": "Hi", "max_tokens": 2, "user": name}
    job_id = client.post("/generate", json=body).json()["job_id"]
    row = f'[data-job="{job_id}"]'
    page.locator(f'{row} [data-state="completed"]').wait_for()
    assert part(page, row, "user") == name
    assert page.locator(f"{row} img, {row} b").count() == 0


def test_a_report_of_the_experiments_is_shown_with_its_plots(page: Page) -> None:
    page.locator("#report-list button").first.click()
    report = page.locator("#report-dialog[open]")
    report.locator("h1").wait_for()
    assert report.locator("img").count() > 0
    assert report.locator("img").first.evaluate("image => image.decode().then(() => image.width)")
    assert report.locator("style, script, [style]").count() == 0
    page.click("#report-close")
    assert page.locator("#report-dialog").is_hidden()


WORKER = {
    **{"name": "w0", "incarnation": "w0.1", "host": "node", "state": "ready", "kv_usage": 0.1},
    **{"slots": 8, "slots_used": 1},
}
QUEUED = [{"priority": "normal", "queued": 30, "expected_wait_s": 41.2}]
SUSPECT = {"priority": "suspect", "queued": 1, "expected_wait_s": None}
LOW = {"priority": "low", "queued": 5, "expected_wait_s": 90.0}
FAILURE = {"name": "w9", "host": "node-9", "message": "no room for the model"}
VIEW: dict[str, Any] = {
    **{"at": 1000, "scope": "all", "workers": [WORKER], "failures": [], "warnings": []},
    "queue": [{"priority": "normal", "queued": 0, "expected_wait_s": 0}],
}


@pytest.mark.parametrize(
    ("changes", "level", "words"),
    [
        ({}, "good", ["nobody waits", "1 of 8 slots"]),
        ({"workers": []}, "bad", ["Users wait", "no worker", "mini-vllm up"]),
        ({"workers": [], "failures": [FAILURE]}, "bad", ["no room for the model", "node-9"]),
        ({"workers": [WORKER | {"state": "loading"}]}, "busy", ["loading"]),
        ({"workers": [WORKER | {"state": "waiting"}]}, "bad", ["wait for free cores"]),
        ({"queue": QUEUED}, "bad", ["wait about 41 seconds", "30 jobs", "Add workers"]),
        ({"queue": QUEUED, "failures": [FAILURE]}, "bad", ["41 seconds", "w9 fails to start"]),
        ({"queue": QUEUED, "workers": None, "failures": None}, "bad", ["41 seconds"]),
        ({"queue": [SUSPECT]}, "busy", ["1 job that workers died of"]),
        ({"queue": [SUSPECT, *QUEUED]}, "bad", ["wait about 41 seconds", "30 jobs"]),
        ({"queue": [LOW]}, "good", ["nobody waits but 5 jobs of low priority"]),
        ({"failures": [FAILURE]}, "busy", ["w9 fails to start", "node-9"]),
        ({"workers": [WORKER, WORKER | {"name": "w1", "state": "lost"}]}, "busy", ["w1"]),
        ({"workers": [WORKER | {"kv_usage": 0.97}]}, "busy", ["KV cache of w0 is 97 % full"]),
        ({"share": 0.4}, "busy", ["CPU quota holds w0 back (40 %"]),
        ({"points": [{"at": 990, "requests_per_s": 2, "errors_per_s": 1}]}, "busy", ["50 %"]),
    ],
)
def test_one_sentence_says_whether_users_wait_why_and_what_to_do(
    page: Page, changes: dict[str, Any], level: str, words: list[str]
) -> None:
    view = {name: value for name, value in (VIEW | changes).items() if name in VIEW}
    verdict = page.evaluate(
        "async ([view, points, share]) => (await import('/dashboard/static/verdict.js'))"
        ".verdictOf(view, points, () => share)",
        [view, changes.get("points", []), changes.get("share", 0)],
    )
    assert verdict["level"] == level
    for word in words:
        assert word in f"{verdict['text']} {verdict['action']}"


def test_it_goes_on_after_the_gateway_was_killed(
    browser: Browser, pool: Up, client: httpx.Client
) -> None:
    with dashboard(browser, pool.url, may_fail=True) as page:
        page.locator("#connection[data-state=live]").wait_for()
        page.locator("[data-worker]").first.wait_for()
        before = totals(page)
        (gateway,) = [p for p in pool.descendants if is_gateway(p)]
        gateway.send_signal(signal.SIGKILL)
        page.locator("#connection[data-state=lost]").wait_for()
        page.locator("#connection[data-state=live]").wait_for()
        assert page.locator("[data-worker]").count() == 2
        job_id = client.post("/generate", json={"prompt": "Hi", "max_tokens": 4}).json()["job_id"]
        page.locator(f'[data-job="{job_id}"] [data-state="completed"]').wait_for()
        done = str(int(before["completed"]) + 1)
        wait_until(lambda: totals(page)["completed"] == done, 10, "the total goes on")


def is_gateway(process: psutil.Process) -> bool:
    return "api" in process.cmdline()


@pytest.mark.parametrize("width", [360, 768])
def test_it_fits_on_a_phone_and_in_the_dark(browser: Browser, pool: Up, width: int) -> None:
    with dashboard(browser, pool.url, width=width, scheme="dark") as page:
        page.locator("[data-worker]").first.wait_for()
        page.locator("[data-job]").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_with_keys_it_asks_for_one_and_shows_what_that_may_see(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    keys = {"MINI_VLLM_API_KEYS": USER_KEY, "MINI_VLLM_ADMIN_KEYS": ADMIN_KEY}
    up = Up(tmp_path_factory.mktemp("closed"), "--workers", "1", "--threads", "1", **keys)
    try:
        up.wait_ready()
        with up.client() as client, dashboard(browser, up.url, may_fail=True) as page:
            client.headers["Authorization"] = f"Bearer {ADMIN_KEY}"
            body = {"prompt": "Hi", "max_tokens": 4}
            other = client.post("/generate", json=body).json()["job_id"]
            give_key(page, "mv-no-key")
            page.locator("#key-why", has_text="not known").wait_for()
            give_key(page, USER_KEY)
            page.locator("#connection[data-state=live]").wait_for()
            page.fill("#chat-max-tokens", "4")
            say(page, "Hello")
            own = str(page.locator(".bubble.assistant").get_attribute("data-job-id"))
            page.locator(f'[data-job="{own}"]').wait_for()
            assert page.locator("[data-job]").count() == 1
            assert page.locator("#workers").is_hidden()
            page.reload()
            page.locator(f'[data-job="{own}"]').wait_for()
            assert page.evaluate("Object.values(sessionStorage)") == [USER_KEY]
            assert page.evaluate("localStorage.length + document.cookie.length") == 0
            page.click("#key-button")
            give_key(page, ADMIN_KEY)
            page.locator(f'[data-job="{other}"]').wait_for()
            page.locator('[data-worker="worker-0"]').wait_for()
            assert page.locator("[data-job]").count() == 2
    finally:
        up.stop()
