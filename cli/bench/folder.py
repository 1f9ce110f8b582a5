"""What `--out` gets: result.json and the plots, each as PNG and SVG."""

import json
import re
from pathlib import Path
from typing import Any

from cli.bench.canvas import save
from cli.bench.measured import Measured
from cli.bench.sweep_plot import draw_sweep
from cli.bench.timeline import to_timeline
from cli.bench.timeline_plot import draw_timeline
from cli.whole_file import write_whole
from shared.errors import BadRequest


def open_folder(folder: Path) -> None:
    """Before anything is measured, so that nothing is measured in vain. Raises ``BadRequest``."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise BadRequest(f"--out {folder}: {error.strerror}", field="out") from None


def fill_folder(
    folder: Path, result: dict[str, Any], measured: Measured, *, has_plots: bool
) -> list[Path]:
    """The files that were written. Those of an earlier run with the same names are replaced."""
    file = folder / "result.json"
    write_whole(file, json.dumps(result, indent=2) + "\n")
    written = [file]
    if not has_plots:
        return written
    if len(measured.points) > 1:
        written += save(draw_sweep(measured), folder / "latency-against-load")
    for name, (point, seen) in measured.last.items():
        figure = draw_timeline(name, point, to_timeline(seen))
        written += save(figure, folder / f"timeline-{slug(name)}")
    return written


def slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name.replace(":", "-")).strip(".-") or "server"
