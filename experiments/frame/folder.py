"""Where results are kept, by host, and what is read of earlier ones."""

import json
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.bench.folder import open_folder
from shared.cores import usable_cores
from shared.errors import BadRequest
from shared.machine import cpu_model
from shared.settings import Settings

#: Beside this package, in a checkout.
_CHECKOUT = Path(__file__).resolve().parents[2]
ALL = "all"


def host_name() -> str:
    """Of the kind of machine: a container's own name says nothing."""
    cpu = re.sub(r"\(.*?\)|\bprocessor\b|\bcpu\b|@.*", " ", cpu_model(), flags=re.IGNORECASE)
    words = re.sub(r"[^a-z0-9]+", "-", f"{cpu} {platform.machine()}".lower()).strip("-")
    return f"{words}-{len(usable_cores().cores)}-cores"


def results_folder(out: Path | None, settings: Settings, *, is_quick: bool) -> Path:
    """Made, and found to be writable. A quick run does not take the place of a full one.
    Raises ``BadRequest``."""
    folder = out
    if folder is None:
        is_checkout = (_CHECKOUT / "pyproject.toml").is_file()
        home = _CHECKOUT / "experiments" if is_checkout else settings.data_dir / "experiments"
        folder = home / "results" / host_name()
        if is_quick:
            folder = folder / "quick"
    open_folder(folder)
    return folder


def read_results(path: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """By experiment, those that are wanted: of a file of one experiment or of ``all``. Raises
    ``BadRequest``."""
    try:
        read = json.loads(path.read_text())
        found = read["experiments"] if "experiments" in read else {read["experiment"]: read}
        wanted = {name: found[name] for name in names if name in found}
        for result in wanted.values():
            if not isinstance(result["figures"], dict) or not isinstance(result["card"], dict):
                raise TypeError
    except OSError as error:
        raise BadRequest(f"--compare {path}: {error.strerror}", field="--compare") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BadRequest(
            f"--compare {path}: it is no result of an experiment", field="--compare"
        ) from None
    if not wanted:
        raise BadRequest(
            f"--compare {path}: it has results of {', '.join(map(str, found)) or 'nothing'}, not of "
            f"{', '.join(names)}",
            field="--compare",
        )
    return wanted


def label_of(card: Mapping[str, Any]) -> str:
    """Of a run, where it stands beside another one."""
    cpu = re.sub(r"\s+", " ", str(card.get("cpu", "?")))
    made_at = str(card.get("made_at", "?"))[:16].replace("T", " ")
    return f"{cpu}, {card.get('cores', '?')} cores, {made_at}"
