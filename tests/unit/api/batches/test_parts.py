"""The files of a batch while it is written, through changes of who writes them."""

from pathlib import Path

import pytest

from api.batches.parts import ERROR, OUTPUT, PartFiles
from api.batches.record import Progress
from api.files.store import FileStore


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path, 10_000_000)


def test_what_is_on_record_is_kept_and_the_rest_is_written_again(store: FileStore) -> None:
    first = PartFiles(store, "b", 1)
    assert first.take_over(Progress()) == Progress(part=1)
    first.write(OUTPUT, 0, b"one\n")
    first.write(OUTPUT, 4, b"two, which is on no record\n")
    second = PartFiles(store, "b", 2)
    progress = second.take_over(Progress(part=1, lines=1, output_bytes=4))
    assert progress == Progress(part=2, lines=1, output_bytes=4)
    second.forget(1)
    second.write(OUTPUT, 4, b"two\n")
    second.write(ERROR, 0, b"three\n")
    assert second.path(OUTPUT).read_bytes() == b"one\ntwo\n"
    assert second.path(ERROR).read_bytes() == b"three\n"
    assert not first.path(OUTPUT).exists()


def test_one_that_writes_on_without_knowing_that_it_has_lost_spoils_nothing(
    store: FileStore,
) -> None:
    first, second = PartFiles(store, "b", 1), PartFiles(store, "b", 2)
    first.write(OUTPUT, 0, b"one\n")
    second.take_over(Progress(part=1, output_bytes=4))
    second.write(OUTPUT, 4, b"two\n")
    first.write(OUTPUT, 4, b"of old\n")
    assert second.path(OUTPUT).read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("there", [None, b"on"])
def test_files_that_are_not_whole_are_made_from_the_beginning(
    store: FileStore, there: bytes | None
) -> None:
    first, second = PartFiles(store, "b", 1), PartFiles(store, "b", 2)
    if there is not None:
        first.write(OUTPUT, 0, there)
    progress = Progress(part=1, lines=5, output_bytes=4, completed=5)
    assert second.take_over(progress) == Progress(part=2)
    assert not second.path(OUTPUT).exists()
