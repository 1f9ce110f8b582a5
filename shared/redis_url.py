"""A Redis URL, the password beside it, and how it may be shown. Pure."""

import re
from urllib.parse import quote, urlsplit, urlunsplit

from shared.errors import SetupError

#: Up to the last @: a password that was not percent-encoded may hold any character.
_LOGIN = re.compile(r"(?s)^([^:/?#]*://[^:@/]*):.*@")
_PASSWORD_OPTION = re.compile(r"(?s)([?&]password=)[^&#]*")


def with_password(url: str, password: str) -> str:
    """The URL with this password, whatever characters it has; one that is in the URL already stays.
    Raises ``ValueError`` for what is no URL."""
    parts = urlsplit(url)
    login, _, place = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    if not password or colon:
        return url
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{place}"))


def shown_url(url: str) -> str:
    """What may stand in a message or a log: without the password, also of a URL that is malformed."""
    return _PASSWORD_OPTION.sub(r"\1***", _LOGIN.sub(r"\1:***@", url))


def bad_url(url: str, error: ValueError) -> SetupError:
    shown, reason = shown_url(url), str(error)
    if shown != url:  # the parser may quote a piece of the password
        reason = "it cannot be read; percent-encode the password, or set MINI_VLLM_REDIS_PASSWORD"
    return SetupError(f"MINI_VLLM_REDIS_URL (--redis-url) {shown!r} is no Redis URL: {reason}")
