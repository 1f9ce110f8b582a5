import pytest
from redis.connection import parse_url

from shared.redis_url import with_password
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
