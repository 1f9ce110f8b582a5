"""A text file that is there whole or as it was before, whatever ends us while it is written."""

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """In place of what is there. Raises ``OSError``."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
