from pathlib import Path

from api.batches.reader import LineReader


def read_all(path: Path, most: int = 10, **begin: int) -> list[tuple[int, int, bytes, bool]]:
    with LineReader(path, most, **begin) as reader:
        found = []
        while lines := reader.read(2):
            found += [(line.number, line.end, line.raw, line.is_too_long) for line in lines]
        return found


def test_lines_have_their_numbers_and_where_they_end(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"one\n\ntwo")
    whole = read_all(path)
    assert whole == [(1, 4, b"one\n", False), (2, 5, b"\n", False), (3, 8, b"two", False)]
    for number, end, _, _ in whole:
        assert read_all(path, lines=number, offset=end) == whole[number:]


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"x" * 3_000_000 + b"\n" + b"y" * 10 + b"\n" + b"z" * 11)
    assert read_all(path) == [
        (1, 3_000_001, b"", True),
        (2, 3_000_012, b"y" * 10 + b"\n", False),
        (3, 3_000_023, b"", True),
    ]
