import pytest
from redis.connection import parse_url

from shared.connection import connect
from shared.errors import SetupError
from shared.redis_url import shown_url, with_password
from shared.settings import load_settings

_ODD = "p@ss/w#o:r d%?&"


@pytest.mark.parametrize(
    "url",
    [
        "redis://worker@redis:6379/0",
        "redis://redis:6379/0",
        "rediss://worker@[::1]:6379",
        "unix://worker@/run/redis.sock?db=1",
    ],
)
def test_any_password_reaches_redis_as_it_is(url: str) -> None:
    plain, full = _parsed(url), _parsed(with_password(url, _ODD))
    assert full.pop("password") == _ODD
    assert full == plain


def test_a_password_in_the_url_stays() -> None:
    url = "redis://worker:own@redis:6379/0"
    assert with_password(url, "other") == url
    assert with_password("redis://redis:6379/0", "") == "redis://redis:6379/0"


def test_settings_put_the_password_into_the_url() -> None:
    settings = load_settings(redis_url="redis://worker@redis/0", redis_password="a b")
    assert settings.redis_url == "redis://worker:a%20b@redis/0"
    assert "a b" not in repr(settings.redis_password)


def _parsed(url: str) -> dict[str, object]:
    return dict(parse_url(url))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://worker:secret@redis:6379/0", "redis://worker:***@redis:6379/0"),
        ("rediss://:secret@[::1]:6379", "rediss://:***@[::1]:6379"),
        ("redis://worker:se/cr#et@x@redis:6379/0", "redis://worker:***@redis:6379/0"),
        ("unix://worker:secret@/run/redis.sock?db=1", "unix://worker:***@/run/redis.sock?db=1"),
        ("redis://redis/0?password=secret&db=1", "redis://redis/0?password=***&db=1"),
        ("redis://worker:sec\nret@redis", "redis://worker:***@redis"),
        ("redis://worker@redis:6379/0", "redis://worker@redis:6379/0"),
        ("redis://redis:6379/0", "redis://redis:6379/0"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("foo://x", "foo://x"),
        ("", ""),
    ],
)
def test_no_password_is_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize(
    "url", ["redis://w:se/cret@h", "foo://w:secret@h", "redis://w:secret@h:port", "redis://[::1"]
)
def test_a_bad_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SetupError, match="MINI_VLLM_REDIS_URL") as refused:
        connect(load_settings(redis_url=url, redis_password="hidden").redis_url)
    assert not any(word in refused.value.message for word in ("cret", "hidden", "'se'"))
