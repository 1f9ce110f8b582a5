"""An upload, taken apart in whatever pieces it comes."""

import pytest

from api.files.expiry import read_expiry
from api.files.form import UploadForm
from shared.errors import BadRequest

TYPE = "multipart/form-data; boundary=b"


def part(name: str, content: bytes, filename: str | None = None) -> bytes:
    of_file = "" if filename is None else f'; filename="{filename}"'
    head = f'--b\r\nContent-Disposition: form-data; name="{name}"{of_file}\r\n\r\n'
    return head.encode() + content + b"\r\n"


def read(body: bytes, size: int = 1000) -> tuple[UploadForm, bytes]:
    form, content = UploadForm(TYPE), b""
    for start in range(0, len(body), size):
        form.feed(body[start : start + size])
        content += form.take()
    return form, content


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_order_of_the_fields_and_the_size_of_the_pieces_do_not_matter(size: int) -> None:
    parts = [part("purpose", b"batch"), part("file", b"a\r\n--c\r\n", "C:\\x\\in.jsonl")]
    for body in (b"".join(parts), b"".join(parts[::-1])):
        form, content = read(body + b"--b--\r\n", size)
        assert form.is_whole
        assert (form.fields, form.filename) == ({"purpose": "batch"}, "in.jsonl")
        assert content == b"a\r\n--c\r\n"


def test_a_file_needs_no_name() -> None:
    form, content = read(part("file", b"x"))
    assert (form.filename, content) == ("upload", b"x")


def test_a_form_that_is_cut_off_is_not_whole() -> None:
    assert not read(part("file", b"x", "a"))[0].is_whole


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (part("surprise", b""), "unknown field `surprise`"),
        (part("file", b"x", "a") * 2, "file: must be given once"),
        (part("purpose", b"x") * 2, "purpose: must be given once"),
        (part("purpose", b"x" * 300), "purpose: must have at most 200 bytes"),
        (b"nonsense", "the form cannot be read"),
    ],
)
def test_what_is_wrong_is_said_by_name(body: bytes, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        read(body)


@pytest.mark.parametrize("kind", ["", "application/json", "multipart/form-data"])
def test_another_kind_of_body_is_refused(kind: str) -> None:
    with pytest.raises(BadRequest, match="multipart/form-data"):
        UploadForm(kind)


@pytest.mark.parametrize("seconds", ["3599", "2592001", "-1", "x", "", "9" * 50, "٣٦٠٠"])
def test_an_expiry_out_of_bounds_is_refused(seconds: str) -> None:
    fields = {"expires_after[anchor]": "created_at", "expires_after[seconds]": seconds}
    with pytest.raises(BadRequest, match="from 3600 to 2592000"):
        read_expiry(fields)
    assert read_expiry(fields | {"expires_after[seconds]": "3600"}) == 3600
    assert read_expiry({}) is None
