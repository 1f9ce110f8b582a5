"""The report's files, each of them there whole or not at all."""

from collections.abc import Callable, Mapping
from pathlib import Path

from cli.whole_file import write_whole


def write_report(
    folder: Path, stem: str, texts: Mapping[str, Callable[[], str]]
) -> tuple[list[Path], bool]:
    """The files, by what their names end in, and whether Ctrl-C came in between: what was measured is
    told all the same, on the last line."""
    written: list[Path] = []
    try:
        for ending, make in texts.items():
            file = folder / f"{stem}.{ending}"
            write_whole(file, make())
            written.append(file)
    except KeyboardInterrupt:
        return written, True
    return written, False
