"""The door to matplotlib, which not every installation has. Plots are readable in grey."""

from pathlib import Path
from typing import TYPE_CHECKING

from shared.errors import SetupError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Told apart without colour: shade, dash and marker each differ.
SHADES = ("#000000", "#777777", "#aaaaaa", "#444444")
DASHES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D")
_DPI = 130


def check_plots() -> None:
    """Before anything is measured. Raises ``SetupError``."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        what = "plots need matplotlib, which is not installed"
        how = 'install it (`pip install "matplotlib>=3.11,<4"`, the extra `plots`), or give --no-plots'
        raise SetupError(f"--out: {what}; {how}", field="out") from None


def new_figure(width_inches: float, height_inches: float) -> "Figure":
    """Without a window, and without the state of pyplot."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width_inches, height_inches), layout="constrained")


def save(figure: "Figure", path: Path) -> list[Path]:
    """As PNG and as SVG; the paths."""
    paths = [path.with_name(f"{path.name}.{ending}") for ending in ("png", "svg")]
    for file in paths:
        figure.savefig(file, dpi=_DPI)
    return paths
