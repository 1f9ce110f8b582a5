"""Where a webhook may go: public addresses only, unless a setting says otherwise. Pure.

A name is judged by the addresses that it has when the delivery is sent, and by nothing before.
"""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import httpx

Address = IPv4Address | IPv6Address

#: They carry an IPv4 address in their last 32 bits.
_NAT64 = IPv6Network("64:ff9b::/96")
_RELAYS_OF_6TO4 = IPv4Network("192.88.99.0/24")
#: Resolvers read these as IPv4 addresses: 2130706433, 0x7f.1 and 127.1 are all 127.0.0.1.
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")

_USER = re.compile(r"[^/?#]*//[^/?#]*@")


def is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        inner = _carried_by(address)
        if inner is not None:
            return is_public(inner)
        if address.is_site_local:
            return False
    elif address in _RELAYS_OF_6TO4:
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _carried_by(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def url_problem(url: str, *, allow_private: bool) -> str | None:
    """What is wrong with it, as far as it can be seen without a look-up; it completes `webhook_url: `."""
    if not url.isascii() or not url.isprintable() or set(url) & set(' \\"<>^`{|}'):
        return "must be a URL of printable ASCII characters, others percent-encoded"
    try:
        parsed = httpx.URL(url)
        host, port = parsed.host, parsed.port
    except (httpx.InvalidURL, ValueError):
        return "must be a URL, such as https://example.com/hook"
    if parsed.scheme not in ("http", "https"):
        return "must begin with https:// or http://"
    if _USER.match(url):
        return "must hold no user name and no password"
    if not host:
        return "must name a host"
    if port is not None and not 1 <= port <= 65_535:
        return "must have a port from 1 to 65535"
    if "#" in url:
        return "must have no fragment (#...)"
    return _host_problem(host, allow_private=allow_private)


def _host_problem(host: str, *, allow_private: bool) -> str | None:
    try:
        address = ip_address(host)
    except ValueError:
        last = host.rstrip(".").rpartition(".")[2]
        if _NUMBER.fullmatch(last) or ":" in host or "%" in host or not last:
            return "must name a host, or an address as four decimal numbers or in brackets"
        return None
    if getattr(address, "scope_id", None) is not None:
        return "must hold an address without a zone"
    if not allow_private and not is_public(address):
        return f"{address} is not a public address (MINI_VLLM_WEBHOOK_ALLOW_PRIVATE=true allows it)"
    return None


def shown_url(url: str) -> str:
    """Without its query, which may hold a secret."""
    head, mark, _ = url.partition("?")
    return f"{head}?..." if mark else head
