"""Pulling a model from a URL: a server on the loopback that hangs up, changes its file, or has none."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.fetch_url import fetch_url
from cli.sources import UrlFile, parse_source
from shared.errors import ModelUnusable, SetupError
from tests.shelf_server import FileServer
from tests.unit.shared.test_gguf_header import make_gguf

CONTENT = make_gguf(block_count=1) + bytes(3_000_000)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer(CONTENT).running() as running:
        yield running


def source(url: str) -> UrlFile:
    found = parse_source(url)
    assert isinstance(found, UrlFile)
    return found


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def interrupt(server: FileServer, folder: Path, cut_after: int = 400_000) -> None:
    """Every try is cut after so many bytes, until there are no more tries."""
    server.cut_after = cut_after
    with pytest.raises(SetupError, match="goes on where this one ended"):
        fetch_url(source(server.url), folder, pause_s=0)
    server.cut_after = None
    server.ranges.clear()


def test_a_file_is_there_when_it_is_whole(server: FileServer, tmp_path: Path) -> None:
    shown: list[tuple[int, int]] = []
    digest = hashlib.sha256(CONTENT).hexdigest()
    wanted = source(f"{server.url}#sha256={digest}")
    path = fetch_url(wanted, tmp_path, progress=lambda *sizes: shown.append(sizes))
    assert path.read_bytes() == CONTENT
    assert names(tmp_path) == ["m.gguf"]
    assert shown[-1] == (len(CONTENT), len(CONTENT))


def test_a_connection_that_breaks_is_gone_on_with(server: FileServer, tmp_path: Path) -> None:
    server.cut_after = 1_000_000
    assert fetch_url(source(server.url), tmp_path, pause_s=0).read_bytes() == CONTENT
    assert server.ranges == [None, *(f"bytes={n}000000-" for n in range(1, len(server.ranges)))]


def test_the_next_call_goes_on_where_one_ended(server: FileServer, tmp_path: Path) -> None:
    interrupt(server, tmp_path)
    assert "m.gguf" not in names(tmp_path)
    assert fetch_url(source(server.url), tmp_path).read_bytes() == CONTENT
    assert server.ranges == ["bytes=2000000-"]
    assert names(tmp_path) == ["m.gguf"]


def test_another_file_at_the_same_address_is_fetched_from_its_beginning(
    server: FileServer, tmp_path: Path
) -> None:
    interrupt(server, tmp_path)
    server.content, server.etag = make_gguf(block_count=2) + bytes(2_500_000), '"two"'
    assert fetch_url(source(server.url), tmp_path).read_bytes() == server.content


def test_a_server_that_names_no_version_is_not_trusted_to_go_on(
    server: FileServer, tmp_path: Path
) -> None:
    server.etag = None
    interrupt(server, tmp_path)
    assert fetch_url(source(server.url), tmp_path).read_bytes() == CONTENT
    assert server.ranges == [None]


def test_what_is_no_model_is_refused_and_removed(server: FileServer, tmp_path: Path) -> None:
    for content in (b"<html>log in first</html>", b"GGUF and no more", b"GG", b""):
        server.content = content
        with pytest.raises(ModelUnusable, match="not kept"):
            fetch_url(source(server.url), tmp_path)
        assert names(tmp_path) == []


def test_a_wrong_checksum_is_refused_and_removed(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(ModelUnusable, match=f"not {'0' * 64}"):
        fetch_url(source(f"{server.url}#sha256={'0' * 64}"), tmp_path)
    assert names(tmp_path) == []


def test_what_the_server_says_is_said(server: FileServer, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(SetupError, match=r"answers 404"):
        fetch_url(source(server.url), tmp_path)
    assert names(tmp_path) == []


def test_a_redirection_is_followed(server: FileServer, tmp_path: Path) -> None:
    server.redirect = "/moved.gguf"
    assert fetch_url(source(server.url), tmp_path).name == "m.gguf"
    server.redirect = "ftp://127.0.0.1/m.gguf"
    with pytest.raises(SetupError, match="could not be fetched"):
        fetch_url(source(server.url.replace("/m.", "/n.")), tmp_path)


def test_a_file_that_was_whole_when_it_was_interrupted_is_taken(
    server: FileServer, tmp_path: Path
) -> None:
    interrupt(server, tmp_path)
    (tmp_path / ".m.gguf.part").write_bytes(CONTENT)
    assert fetch_url(source(server.url), tmp_path).read_bytes() == CONTENT
    assert server.ranges == [f"bytes={len(CONTENT)}-"]


def test_the_command_never_writes_over_a_file(server: FileServer, tmp_path: Path) -> None:
    def pull(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "cli", "model", "pull", *arguments],
            env=os.environ | {"MINI_VLLM_MODEL_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    code, text = pull(server.url)
    assert code == 0
    assert "mini-vllm up --model m" in text
    server.content = b"another"
    code, text = pull(server.url)
    assert (code, "is here already" in text) == (0, True)
    code, text = pull(f"{server.url}#sha256={'0' * 64}")
    assert (code, "is another file" in text) == (1, True)
    assert (tmp_path / "m.gguf").read_bytes() == CONTENT
