"""Where a model can be pulled from: how each is written, and what of it is refused. Pure."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import SplitResult, unquote, urlsplit

from shared.errors import SetupError, UnknownModel
from shared.models import KNOWN_MODELS, KnownModel

_HUB = "hf:"
_SHA256 = re.compile(r"sha256=([0-9a-fA-F]{64})")
_SPLIT = re.compile(r"-\d{5}-of-\d{5}\.gguf", re.IGNORECASE)
_HOW = f"a known name ({', '.join(KNOWN_MODELS)}), hf:OWNER/REPO/FILE.gguf, or an http(s) URL of a .gguf file"


@dataclass(frozen=True, slots=True)
class HubFile:
    repo_id: str
    path: str  #: in the repository

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


@dataclass(frozen=True, slots=True)
class UrlFile:
    """``url`` without its fragment; ``sha256`` in lower case, where it was given."""

    url: str
    name: str
    sha256: str | None = None

    @property
    def shown(self) -> str:
        """Without what may be secret: a login, a signed query."""
        return shown_address(self.url)


def shown_address(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def parse_source(text: str) -> KnownModel | HubFile | UrlFile:
    """Raises ``UnknownModel`` or ``SetupError`` that says how it is written."""
    if text in KNOWN_MODELS:
        return KNOWN_MODELS[text]
    if text.startswith(_HUB):
        return _hub_file(text)
    if "://" in text:
        return _url_file(text)
    raise UnknownModel(f"there is no known model {text!r}; give {_HOW}")


def _hub_file(text: str) -> HubFile:
    owner, _, rest = text.removeprefix(_HUB).partition("/")
    repo, _, path = rest.partition("/")
    parts = path.split("/")
    if not (owner and repo and path) or any(part in ("", ".", "..") for part in parts):
        raise SetupError(f"{text[:200]}: must be hf:OWNER/REPO/FILE.gguf")
    _check_name(parts[-1], text)
    return HubFile(f"{owner}/{repo}", path)


def _url_file(text: str) -> UrlFile:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise SetupError(f"{text[:200]!r} is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SetupError(
            f"{_shown(parts)}: only http:// and https:// can be fetched; or give {_HOW}"
        )
    sha256 = _SHA256.fullmatch(parts.fragment)
    if parts.fragment and not sha256:
        raise SetupError(f"{_shown(parts)}: after # only sha256= and its 64 hex digits may stand")
    name = unquote(parts.path.rpartition("/")[2])
    _check_name(name, _shown(parts))
    url = parts._replace(fragment="").geturl()
    return UrlFile(url, name, sha256[1].lower() if sha256 else None)


def _shown(parts: SplitResult) -> str:
    return shown_address(parts.geturl())


def _check_name(name: str, where: str) -> None:
    if not re.fullmatch(r"[^./\\\x00-\x1f][^/\\\x00-\x1f]{0,180}\.gguf", name, re.IGNORECASE):
        raise SetupError(f"{where[:200]}: must end in the name of a .gguf file")
    if _SPLIT.search(name):
        raise SetupError(f"{name}: a model that is split into several files cannot be pulled")
