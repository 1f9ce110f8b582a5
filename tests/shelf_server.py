"""A web server of one file on the loopback, which a test tells how to misbehave."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FileServer:
    """``cut_after``: sends so many bytes of each answer and hangs up."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.etag: str | None = '"one"'
        self.cut_after: int | None = None
        self.status: int | None = None
        self.redirect = ""
        self.ranges: list[str | None] = []  #: as they were asked for
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/m.gguf"

    @contextmanager
    def running(self) -> Iterator["FileServer"]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield self
        self._server.shutdown()
        self._server.server_close()
        thread.join(10)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        shelf = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = self.headers.get("Range")
                shelf.ranges.append(asked)
                if shelf.status:
                    self.send_error(shelf.status)
                    return
                if shelf.redirect and self.path != "/moved.gguf":
                    self.send_response(302)
                    self.send_header("Location", shelf.redirect)
                    self.end_headers()
                    return
                begin, size = 0, len(shelf.content)
                if asked and self.headers.get("If-Range") == shelf.etag:
                    begin = int(asked.removeprefix("bytes=").removesuffix("-"))
                    if begin >= size:
                        self.send_response(416)
                        self.send_header("Content-Range", f"bytes */{size}")
                        self.end_headers()
                        return
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {begin}-{size - 1}/{size}")
                else:
                    self.send_response(200)
                self.send_header("Content-Length", str(size - begin))
                if shelf.etag:
                    self.send_header("ETag", shelf.etag)
                self.end_headers()
                body = shelf.content[begin:]
                self.wfile.write(body if shelf.cut_after is None else body[: shelf.cut_after])
                self.close_connection = True

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        return Handler
