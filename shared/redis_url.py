"""A Redis URL and the password beside it. Pure."""

from urllib.parse import quote, urlsplit, urlunsplit


def with_password(url: str, password: str) -> str:
    """The URL with this password, whatever characters it has; one that is in the URL already stays."""
    parts = urlsplit(url)
    login, _, place = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    if not password or colon:
        return url
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{place}"))
