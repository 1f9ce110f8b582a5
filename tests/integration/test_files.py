"""``/v1/files`` with OpenAI's own client: a bounded store in a folder."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest
from redis import Redis

from api.files.store import FileStore
from api.files.tidying import tidy_files
from shared.connection import connect_async
from shared.keys import file_readers_key
from tests.batches import client_of, left_in
from tests.gateway import RunningGateway


@pytest.fixture
def files(valkey_url: str, flushed: Redis, tmp_path: Path) -> Iterator[RunningGateway]:
    del flushed
    gateway = RunningGateway(
        valkey_url,
        data_dir=tmp_path,
        api_keys="alice,bob",
        max_file_bytes=20_000_000,
        file_store_max_bytes=30_000_000,
        max_inflight_body_bytes=1_048_576,
    )
    yield gateway.start()
    gateway.stop()


@pytest.fixture
def alice(files: RunningGateway) -> openai.OpenAI:
    return client_of(files, "alice")


def test_a_file_is_there_until_it_is_deleted(alice: openai.OpenAI, tmp_path: Path) -> None:
    file = alice.files.create(file=("a b.jsonl", b"one\ntwo\n"), purpose="batch")
    assert (file.bytes, file.filename, file.purpose) == (8, "a b.jsonl", "batch")
    assert file.expires_at == file.created_at + 30 * 86_400
    assert alice.files.retrieve(file.id) == file
    assert alice.files.content(file.id).content == b"one\ntwo\n"
    assert [found.id for found in alice.files.list()] == [file.id]
    assert alice.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError) as missing:
        alice.files.content(file.id)
    assert missing.value.code == "file_not_found"
    assert list((tmp_path / "files").iterdir()) == []


def test_files_are_listed_in_pages(alice: openai.OpenAI) -> None:
    made = [alice.files.create(file=(f"{i}", b"x"), purpose="batch").id for i in range(5)]
    listed = [file.id for file in alice.files.list(limit=2)]
    assert sorted(listed) == sorted(made)
    backwards = [file.id for file in alice.files.list(limit=2, order="asc")]
    assert backwards == listed[::-1]
    assert not list(alice.files.list(purpose="batch_output"))


def test_a_file_is_its_owners(alice: openai.OpenAI, files: RunningGateway) -> None:
    file = alice.files.create(file=("a", b"x"), purpose="batch")
    bob = client_of(files, "bob")
    assert not list(bob.files.list())
    for call in (bob.files.retrieve, bob.files.content, bob.files.delete):
        with pytest.raises(openai.NotFoundError):
            call(file.id)


def test_an_upload_is_on_the_disk_and_not_in_memory(
    alice: openai.OpenAI, files: RunningGateway
) -> None:
    """It is twenty times what all bodies under way may hold."""
    content = os.urandom(19_000_000)
    file = alice.files.create(file=("large", content), purpose="batch")
    assert alice.files.content(file.id).content == content
    assert files.held_body_bytes == 0


def test_one_that_is_too_large_is_refused_and_nothing_of_it_is_kept(
    alice: openai.OpenAI, tmp_path: Path
) -> None:
    with pytest.raises(openai.APIStatusError) as refused:
        alice.files.create(file=("large", bytes(20_000_001)), purpose="batch")
    assert (refused.value.status_code, refused.value.code) == (413, "body_too_large")
    assert "20000000" in refused.value.message
    assert left_in(tmp_path / "files") == []


def test_the_store_is_bounded_as_a_whole(alice: openai.OpenAI, tmp_path: Path) -> None:
    first = alice.files.create(file=("one", bytes(19_000_000)), purpose="batch")
    with pytest.raises(openai.APIStatusError) as refused:
        alice.files.create(file=("two", bytes(19_000_000)), purpose="batch")
    assert (refused.value.status_code, refused.value.code) == (507, "storage_full")
    assert "file_store_max_bytes" in refused.value.message
    assert left_in(tmp_path / "files") == []
    alice.files.delete(first.id)
    alice.files.create(file=("two", bytes(19_000_000)), purpose="batch")


def test_a_file_may_have_its_own_expiry(alice: openai.OpenAI) -> None:
    file = alice.files.create(
        file=("a", b"x"),
        purpose="batch",
        expires_after={"anchor": "created_at", "seconds": 3600},
    )
    assert file.expires_at == file.created_at + 3600
    with pytest.raises(openai.BadRequestError, match="from 3600"):
        alice.files.create(
            file=("a", b"x"),
            purpose="batch",
            expires_after={"anchor": "created_at", "seconds": 5},
        )


def test_what_is_wrong_with_an_upload_is_said_by_name(files: RunningGateway) -> None:
    with files.client() as http:
        headers = {"Authorization": "Bearer alice"}

        def refusal(data: dict[str, str], name: str = "file") -> tuple[int, str]:
            response = http.post("/v1/files", headers=headers, data=data, files={name: ("a", b"x")})
            return response.status_code, response.json()["error"]["message"]

        assert refusal({"purpose": "vision"}) == (
            400,
            "purpose: only 'batch' is supported (got 'vision')",
        )
        assert refusal({}) == (400, "purpose: is required")
        assert refusal({"purpose": "batch", "x": "1"}) == (400, "unknown field `x`")
        assert refusal({"purpose": "batch"}, "upload") == (400, "unknown field `upload`")
        plain = http.post("/v1/files", headers=headers, json={"purpose": "batch"})
        assert (plain.status_code, "multipart" in plain.text) == (400, True)


def test_an_upload_that_breaks_off_leaves_nothing(files: RunningGateway, tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        yield bytes(3_000_000)

    headers = {
        "Authorization": "Bearer alice",
        "Content-Type": "multipart/form-data; boundary=b",
    }
    response = httpx.post(files.url + "/v1/files", content=pieces(), headers=headers)
    assert response.status_code == 400
    assert list((tmp_path / "files").iterdir()) == []


def test_a_file_that_a_batch_reads_is_not_deleted(alice: openai.OpenAI, flushed: Redis) -> None:
    file = alice.files.create(file=("a", b"x"), purpose="batch")
    flushed.sadd(file_readers_key(file.id), "batch_" + "0" * 32)
    with pytest.raises(openai.ConflictError) as refused:
        alice.files.delete(file.id)
    assert refused.value.code == "file_in_use"
    flushed.delete(file_readers_key(file.id))
    assert alice.files.delete(file.id).deleted


def test_what_has_expired_or_was_left_behind_is_dropped(
    valkey_url: str, flushed: Redis, tmp_path: Path, alice: openai.OpenAI
) -> None:
    names = [alice.files.create(file=(f"{i}", b"x"), purpose="batch").id for i in range(2)]
    flushed.sadd(file_readers_key(names[1]), "batch_" + "0" * 32)
    folder = tmp_path / "files"
    left = folder / f"file-{'0' * 32}.part"
    fresh, strange = folder / f"file-{'1' * 32}.part", folder / "notes.txt"
    for path in (left, fresh, strange):
        path.write_bytes(b"x")
    for path in (left, strange):
        os.utime(path, (0, 0))
    store = FileStore(folder, 30_000_000)

    async def tidy(now_s: float) -> None:
        reads = connect_async(valkey_url)
        await tidy_files(store, reads, now_s)
        await reads.aclose()

    asyncio.run(tidy(time.time()))
    assert not left.exists()
    assert fresh.exists()
    assert strange.exists()
    asyncio.run(tidy(time.time() + 31 * 86_400))
    assert not store.path(names[0]).exists()
    assert store.path(names[1]).exists(), "a batch reads it"
