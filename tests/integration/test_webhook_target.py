"""Where a webhook really goes: to the address that was judged, under the name that was given."""

import asyncio
import shutil
import ssl
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from api.webhook_target import NotTaken, Refused, WebhookTarget
from tests.receiver import running_receiver

Row = tuple[Any, ...]


def post(url: str, *addresses: str, **options: Any) -> int:
    """With a name service that knows these addresses; how often it was asked."""
    asked = 0

    async def run() -> None:
        async def look_up(_host: str, port: int, **_: object) -> list[Row]:
            nonlocal asked
            asked += 1
            return [(2, 1, 6, "", (address, port)) for address in addresses]

        asyncio.get_running_loop().getaddrinfo = look_up  # type: ignore[assignment]
        target = WebhookTarget(timeout_s=5, **{"allow_private": True} | options)
        try:
            await target.post(url, {}, b"{}")
        finally:
            await target.aclose()

    asyncio.run(run())
    return asked


@pytest.mark.parametrize(
    "addresses",
    [("127.0.0.1",), ("8.8.8.8", "10.0.0.1"), ("2606:4700::1111", "::ffff:127.0.0.1")],
)
def test_one_private_address_among_others_is_enough_to_refuse(addresses: tuple[str, ...]) -> None:
    with pytest.raises(Refused, match=r"hook\.example has an address that is not public"):
        post("https://hook.example/", *addresses, allow_private=False)


def test_a_name_is_looked_up_once_and_sent_along() -> None:
    with running_receiver() as receiver:
        port = receiver.url.rpartition(":")[2]
        assert post(f"http://hook.example:{port}/a?b=c", "127.0.0.1") == 1
        (got,) = receiver.received
    assert (got.path, got.headers["Host"]) == ("/a?b=c", f"hook.example:{port}")


def test_the_next_address_is_tried_where_nobody_listens() -> None:
    with running_receiver() as receiver:
        port = receiver.url.rpartition(":")[2]
        post(f"http://hook.example:{port}/", "127.0.0.2", "127.0.0.1")
        assert len(receiver.received) == 1


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_certificate_must_be_that_of_the_name(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    made += ["-subj", "/CN=hook.example", "-addext", "subjectAltName=DNS:hook.example"]
    subprocess.run([*made, "-keyout", key, "-out", cert], check=True, capture_output=True)
    names: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(HTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Whoever does not trust us leaves."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    port = server.server_address[1]
    tls = ssl.create_default_context(cafile=cert)
    try:
        post(f"https://hook.example:{port}/", "127.0.0.1", tls=tls)
        with pytest.raises(NotTaken, match="no connection"):
            post(f"https://other.example:{port}/", "127.0.0.1", tls=tls)
        with pytest.raises(NotTaken, match="no connection"):
            post(f"https://hook.example:{port}/", "127.0.0.1")
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=20)
    assert names[:2] == ["hook.example", "other.example"]
