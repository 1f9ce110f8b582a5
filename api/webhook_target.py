"""Sends one delivery: the host is looked up once, every address of it is judged, and the connection
goes to one of those very addresses, so that no second look-up can lead elsewhere."""

import asyncio
import socket
import ssl
from ipaddress import ip_address

import httpx

from shared.webhooks.addresses import Address, is_public, url_problem

#: To give up for good; the receiver says that nobody is there to hear.
_GONE = 410


class Refused(Exception):
    """It will not be better next time."""


class NotTaken(Exception):
    """The receiver did not take it; another try may go better."""


class WebhookTarget:
    def __init__(
        self, *, allow_private: bool, timeout_s: float, tls: ssl.SSLContext | None = None
    ) -> None:
        """``tls`` in place of the usual certificates."""
        self._allow_private = allow_private
        self._timeout_s = timeout_s
        # NOTE: no connection is kept: one to the same address may be that of another host's name.
        # Proxies of the environment would look the name up again.
        self._client = httpx.AsyncClient(
            trust_env=False,
            verify=tls or True,
            follow_redirects=False,
            timeout=timeout_s,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def post(self, url: str, headers: dict[str, str], body: bytes) -> None:
        """Raises ``Refused`` or ``NotTaken``, whose text tells nothing of what a private host answers."""
        problem = url_problem(url, allow_private=self._allow_private)
        if problem:
            raise Refused(problem)
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._post(httpx.URL(url), headers, body)
        except TimeoutError:
            raise NotTaken(f"no answer within {self._timeout_s:g} s") from None
        except httpx.TransportError as error:
            raise NotTaken(f"no connection: {type(error).__name__}") from None

    async def _post(self, url: httpx.URL, headers: dict[str, str], body: bytes) -> None:
        addresses = await self._addresses(url)
        for address in addresses[:-1]:
            try:
                return await self._post_to(address, url, headers, body)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await self._post_to(addresses[-1], url, headers, body)

    async def _addresses(self, url: httpx.URL) -> list[Address]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                url.host,
                url.port or (443 if url.scheme == "https" else 80),
                type=socket.SOCK_STREAM,
            )
        except (OSError, UnicodeError):
            raise NotTaken(f"{url.host} cannot be looked up") from None
        addresses = list(dict.fromkeys(ip_address(str(row[4][0])) for row in found))
        if not self._allow_private and not all(map(is_public, addresses)):
            raise Refused(
                f"{url.host} has an address that is not public "
                "(MINI_VLLM_WEBHOOK_ALLOW_PRIVATE=true allows it)"
            )
        return addresses

    async def _post_to(
        self, address: Address, url: httpx.URL, headers: dict[str, str], body: bytes
    ) -> None:
        request = self._client.build_request(
            "POST",
            url.copy_with(host=str(address)),
            headers={"Host": url.netloc.decode(), "User-Agent": "mini-vllm", **headers},
            content=body,
            extensions={"sni_hostname": url.host},
        )
        # Streamed, and closed unread: the status says it all, and the body may have no end.
        response = await self._client.send(request, stream=True)
        await response.aclose()
        if response.status_code == _GONE:
            raise Refused("the receiver answered 410 (gone)")
        if not response.is_success:
            raise NotTaken(f"the receiver answered {response.status_code}")
