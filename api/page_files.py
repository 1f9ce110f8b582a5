"""The files of the dashboard, read when the gateway starts: what is not among them is not there.

They are few and small, and held in memory: no request names a path of the disk.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response

INDEX = "index.html"
FOLDER = Path(__file__).parent / "dashboard"

#: By suffix; other files are not served.
_CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
    ".LICENSE": "text/plain; charset=utf-8",
}

_CLOSED = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SHIELDS = {
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
PAGE_HEADERS = {"Content-Security-Policy": _CLOSED, **_SHIELDS}
#: A report is one file with its styles and plots inside; it runs nothing and reaches nobody.
REPORT_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-popups",
    "Cache-Control": "no-cache",
    **_SHIELDS,
}


@dataclass(frozen=True, slots=True)
class PageFile:
    body: bytes
    content_type: str
    etag: str

    def response(self, headers: Headers) -> Response:
        """304 for who has it; a browser asks each time, so that a new version is never mixed with an
        old one."""
        sent = {"ETag": self.etag, "Cache-Control": "no-cache", **PAGE_HEADERS}
        if self.etag in _tags(headers.get("if-none-match", "")):
            return Response(status_code=304, headers=sent)
        return Response(self.body, headers=sent | {"Content-Type": self.content_type})


def read_page_files(folder: Path) -> Mapping[str, PageFile]:
    """By their path in the folder. Empty for a folder that is not there."""
    return {
        path.relative_to(folder).as_posix(): _page_file(path)
        for path in sorted(folder.rglob("*"))
        if path.suffix in _CONTENT_TYPES and path.is_file()
    }


def _page_file(path: Path) -> PageFile:
    body = path.read_bytes()
    etag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
    return PageFile(body, _CONTENT_TYPES[path.suffix], etag)


def _tags(if_none_match: str) -> set[str]:
    """A proxy that compressed the file has made its tag a weak one."""
    return {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
