import pytest

from cli.sources import HubFile, UrlFile, parse_source
from shared.errors import ServiceError
from shared.models import SMOLLM2

DIGEST = "Ab" * 32


def test_a_known_name_a_file_of_the_hub_and_a_url_are_told_apart() -> None:
    assert parse_source("smollm2") is SMOLLM2
    assert parse_source("hf:o/r/m.gguf") == HubFile("o/r", "m.gguf")
    assert parse_source("hf:o/r/sub/m.Q4_0.gguf") == HubFile("o/r", "sub/m.Q4_0.gguf")
    url = "https://host.example:8443/a/m%20x.gguf?download=true"
    assert parse_source(url) == UrlFile(url, "m x.gguf")


def test_a_checksum_stands_behind_the_url_and_is_not_sent() -> None:
    found = parse_source(f"http://h/m.gguf#sha256={DIGEST}")
    assert found == UrlFile("http://h/m.gguf", "m.gguf", DIGEST.lower())


def test_what_may_be_secret_in_a_url_is_not_shown() -> None:
    found = parse_source("https://user:pass@h/m.gguf?signature=abc")
    assert isinstance(found, UrlFile)
    assert found.shown == "https://h/m.gguf"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nope", "no known model 'nope'"),
        ("hf:", "hf:OWNER/REPO/FILE.gguf"),
        ("hf:o/r", "hf:OWNER/REPO/FILE.gguf"),
        ("hf:o/r/", "hf:OWNER/REPO/FILE.gguf"),
        ("hf:o/r/../m.gguf", "hf:OWNER/REPO/FILE.gguf"),
        ("hf:o/r/m.bin", "name of a .gguf file"),
        ("hf:o/r/m-00001-of-00003.gguf", "split into several"),
        ("ftp://h/m.gguf", "only http:// and https://"),
        ("file:///tmp/m.gguf", "only http:// and https://"),
        ("http:///m.gguf", "only http:// and https://"),
        ("http://h:port/m.gguf", "no URL"),
        ("http://[::1/m.gguf", "no URL"),
        ("http://h/m.bin", "name of a .gguf file"),
        ("http://h/", "name of a .gguf file"),
        ("http://h/..%2Fm.gguf", "name of a .gguf file"),
        ("http://h/.m.gguf", "name of a .gguf file"),
        ("http://h/a%00.gguf", "name of a .gguf file"),
        ("http://h/m.gguf#sha256=abc", "64 hex digits"),
        ("http://h/m.gguf#md5=abc", "only sha256="),
    ],
)
def test_what_cannot_be_pulled_is_refused_in_words(source: str, words: str) -> None:
    with pytest.raises(ServiceError) as caught:
        parse_source(source)
    assert words in caught.value.message
