"""What a figure was measured on: the machine, the model, and how busy it was with other things."""

import os
import platform
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from shared.cores import usable_cores
from shared.models import resolve_model
from shared.settings import load_settings

_FILE_WIDTH = 140


def open_console() -> Console:
    """Into a file, tables are as wide as they need to be."""
    console = Console()
    return console if console.is_terminal else Console(width=_FILE_WIDTH)


def load_1min() -> float:
    return round(os.getloadavg()[0], 2)


def busy_cores(interval_s: float = 1.0) -> float:
    """Cores' worth of CPU that all processes together used in the interval."""
    return round(psutil.cpu_percent(interval_s) / 100 * (psutil.cpu_count() or 1), 2)


def make_card(model: str | None = None) -> dict[str, object]:
    """Of the machine, and of the model if one is used. Called before the load begins, so that what
    it says of load is that of others."""
    usable = usable_cores()
    card: dict[str, object] = {
        "cpu": _cpu_name(),
        "cores": len(usable.cores),
        "cpu_quota": usable.quota,
        "memory_mb": round(psutil.virtual_memory().total / 1e6),
        "available_mb": round(psutil.virtual_memory().available / 1e6),
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "load_1min_before": load_1min(),
        "busy_cores_before": busy_cores(),
    }
    if model is not None:
        path = resolve_model(model, load_settings().model_dir).path
        card |= {"model": path.name, "model_mb": round(path.stat().st_size / 1e6, 1)}
    return card


def print_card(console: Console, card: dict[str, object]) -> None:
    print_table(console, "measured on", [(name, str(value)) for name, value in card.items()])


def print_table(console: Console, title: str, rows: list[tuple[str, str]]) -> None:
    table = Table(title=title, title_justify="left", show_header=False)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
