import json

from api.refusal import refusal
from shared.errors import BadRequest, HeadersTooLarge


def test_an_error_is_a_whole_response_and_the_last() -> None:
    head, body = refusal(HeadersTooLarge("too much"), None, [(b"date", b"now")]).split(b"\r\n\r\n")
    status, *headers = head.split(b"\r\n")
    assert status == b"HTTP/1.1 431 Request Header Fields Too Large"
    assert set(headers) == {
        b"date: now",
        b"connection: close",
        b"content-type: application/json",
        b"content-length: %d" % len(body),
    }
    error = json.loads(body)["error"]
    assert (error["code"], error["message"]) == ("headers_too_large", "too much")


def test_a_status_may_be_another_than_that_of_the_class() -> None:
    assert refusal(BadRequest(), 400, []).startswith(b"HTTP/1.1 400 Bad Request\r\n")
