import base64
import re
from importlib.resources import files
from ipaddress import ip_address
from time import time

import pytest
from standardwebhooks import Webhook

from shared.errors import SetupError
from shared.keys import PREFIX, WEBHOOKS, webhook_key
from shared.settings import load_settings
from shared.webhooks.addresses import is_public, shown_url, url_problem
from shared.webhooks.deliveries import job_delivery_id
from shared.webhooks.retries import MAX_DELAY_S, delay_s
from shared.webhooks.signing import secret_bytes, signed_headers

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()


@pytest.mark.parametrize(
    "text",
    [
        "8.8.8.8",
        "1.1.1.1",
        "2606:4700::1111",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
    ],
)
def test_public_addresses_are_public(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1",
        "127.8.9.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "198.18.0.1",
        "224.0.0.1",
        "239.1.1.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "::8.8.8.8",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2002:a00:1::1",
        "2001:0:7f00:1::",
        "2001:db8::1",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
    ],
)
def test_private_and_special_addresses_are_not(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("ftp://example.com/", "https://"),
        ("file:///etc/passwd", "https://"),
        ("example.com/hook", "https://"),
        ("https://", "host"),
        ("https:///x", "host"),
        ("https://me:pw@example.com/", "user name"),
        ("https://@example.com/", "user name"),
        ("https://example.com:0/", "port"),
        ("https://example.com:99999/", "port"),
        ("https://example.com/#part", "fragment"),
        ("https://exa mple.com/", "ASCII"),
        ("https://example.com\\@127.0.0.1/", "ASCII"),
        ("https://example.com/\r\nX: 1", "ASCII"),
        ("https://b\u00fccher.example/", "ASCII"),
        ("http://2130706433/", "four decimal"),
        ("http://0x7f000001/", "four decimal"),
        ("http://0x7f.1/", "four decimal"),
        ("http://0177.0.0.1/", ""),
        ("http://127.1/", "four decimal"),
        ("http://127.0.0.1./", "four decimal"),
        ("http://[fe80::1%25eth0]/", ""),
        ("http://127.0.0.1/", "not a public address"),
        ("http://[::1]:80/", "not a public address"),
        ("http://[::ffff:10.0.0.1]/", "not a public address"),
        ("http://169.254.169.254/latest/meta-data", "not a public address"),
    ],
)
def test_a_url_that_may_not_be_called_is_refused(url: str, word: str) -> None:
    problem = url_problem(url, allow_private=False)
    assert problem is not None
    assert word in problem


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/hook?token=a%20b",
        "http://example.com:8080",
        "https://8.8.8.8/",
        "https://[2606:4700::1111]:8443/x",
        "https://hooks.v2.example/",
        "https://localhost/",  # a name is judged by its addresses, when it is sent
    ],
)
def test_a_url_that_may_be_called_is_taken(url: str) -> None:
    assert url_problem(url, allow_private=False) is None


def test_private_addresses_are_taken_where_they_are_allowed() -> None:
    assert url_problem("http://127.0.0.1:9/x", allow_private=True) is None
    assert url_problem("http://0x7f.1/", allow_private=True) is not None


def test_a_url_is_shown_without_its_query() -> None:
    assert shown_url("https://example.com/a?token=secret") == "https://example.com/a?..."
    assert shown_url("https://example.com/a") == "https://example.com/a"


@pytest.mark.parametrize("secret", [SECRET, "whsec_" + "QUJD" * 8, "any text of some length"])
def test_a_receiver_can_verify_what_is_signed(secret: str) -> None:
    key = secret_bytes(secret)
    body = '{"a": "\u00fc"}'.encode()
    headers = signed_headers(key, "job_1", int(time()), body)
    receiver = Webhook(secret if secret.startswith("whsec_") else key)
    assert receiver.verify(body, headers) == {"a": "\u00fc"}


@pytest.mark.parametrize("secret", ["short", "whsec_QUJD", "whsec_not base64 at all, really"])
def test_a_secret_that_is_none_stops_the_process_by_name(secret: str) -> None:
    with pytest.raises(SetupError, match="MINI_VLLM_WEBHOOK_SECRET") as caught:
        load_settings(webhook_secret=secret)
    assert secret not in str(caught.value)


def test_each_try_waits_four_times_as_long_up_to_two_hours() -> None:
    waits = [delay_s(attempt, 5, 0) for attempt in range(1, 9)]
    assert waits == [5, 20, 80, 320, 1280, 5120, MAX_DELAY_S, MAX_DELAY_S]
    assert delay_s(10_000, 5, 0) == MAX_DELAY_S


def test_what_failed_together_does_not_come_again_together() -> None:
    assert delay_s(1, 5, 0) < delay_s(1, 5, 0.5) < delay_s(1, 5, 1) <= 6


def test_the_scripts_name_the_keys_as_the_modules_do() -> None:
    text = (files("shared") / "lua" / "common.lua").read_text()
    assert re.search(r"WEBHOOKS = .*P \.\. 'webhooks'", text)
    assert f"{PREFIX}webhooks" == WEBHOOKS
    assert "function webhook_key(id) return P .. 'webhook:' .. id end" in text
    assert webhook_key("x") == f"{PREFIX}webhook:x"
    assert "put_webhook('job_' .. id" in text
    assert job_delivery_id("x") == "job_x"
