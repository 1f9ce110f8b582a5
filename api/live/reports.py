"""The experiments' reports that are here: of the checkout, or of the data directory. Blocking."""

from pathlib import Path
from urllib.parse import quote

from pydantic import BaseModel

from shared.errors import RouteNotFound
from shared.settings import Settings

PATH = "/dashboard/reports"
_FILE = "report.html"
_MAX_SHOWN = 50
#: Beside this package, in a checkout.
_CHECKOUT = Path(__file__).resolve().parents[2]


class ReportLink(BaseModel):
    name: str
    href: str


class Reports:
    """Each is ``<folder>/<name>/report.html``; of two with one name the first folder's counts."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders

    @classmethod
    def from_settings(cls, settings: Settings) -> "Reports":
        """Where the experiments put them."""
        homes = (_CHECKOUT / "experiments", settings.data_dir / "experiments")
        return cls(*(home / "results" for home in homes))

    def links(self) -> list[ReportLink]:
        names = sorted(self._files())[:_MAX_SHOWN]
        return [ReportLink(name=n, href=f"{PATH}/{quote(n, safe='')}/{_FILE}") for n in names]

    def read(self, name: str) -> bytes:
        """Raises ``RouteNotFound`` for what is not in the list."""
        try:
            return self._files()[name].read_bytes()
        except (KeyError, OSError):
            raise RouteNotFound("There is no report of this name.") from None

    def _files(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for folder in self._folders:
            for path in folder.glob(f"*/{_FILE}"):
                if path.parent.name.isprintable():  # else it may be no text, which no link can name
                    found.setdefault(path.parent.name, path)
        return found
