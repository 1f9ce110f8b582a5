"""The files of the model directory: which model each is, which are copies of which, and what may go."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shared.content_hash import content_hash
from shared.converted import CONVERTED_FOLDER, HASH_CHARS, HASHES_FOLDER
from shared.errors import ServiceError, SetupError
from shared.gguf_header import read_facts
from shared.models import KNOWN_MODELS, resolve_model
from shared.weight_formats import format_of

_COPY = re.compile(
    rf"(?P<stem>.+)\.(?P<digest>[0-9a-f]{{{HASH_CHARS}}})\.(?P<format>[a-z0-9_]+)\.gguf"
)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """``source`` is the stem of the file that a copy was made of, ``digest`` the begin of its hash."""

    path: Path
    size_bytes: int
    format: str
    source: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        known = (m.name for m in KNOWN_MODELS.values() if m.file_name == self.path.name)
        return next(known, self.path.stem)


def model_files(model_dir: Path) -> list[ModelFile]:
    """Without the copies."""
    return [_model_file(path) for path in sorted(model_dir.glob("*.gguf"))]


def copies(model_dir: Path) -> list[ModelFile]:
    found = []
    for path in sorted((model_dir / CONVERTED_FOLDER).glob("*.gguf")):
        parts = _COPY.fullmatch(path.name)
        if parts:
            found.append(_model_file(path, parts["stem"], parts["digest"]))
    return found


def copies_of(source: Path, model_dir: Path) -> list[ModelFile]:
    """Of exactly what the file holds now."""
    with_name = [copy for copy in copies(model_dir) if copy.source == source.stem]
    if not with_name:
        return []
    digest = content_hash(source, model_dir / CONVERTED_FOLDER / HASHES_FOLDER)
    return [copy for copy in with_name if copy.digest == digest[:HASH_CHARS]]


def removable(name_or_path: str | None, model_dir: Path, *, only_copies: bool) -> list[ModelFile]:
    """What `model rm` means: a model and its copies, which are of no use without it; one copy; or copies
    only, of one model or of all. Raises ``UnknownModel``, and ``SetupError`` for what is elsewhere."""
    if name_or_path is None:
        return copies(model_dir)
    try:
        path = resolve_model(name_or_path, model_dir).path
    except ServiceError:
        path = model_dir / CONVERTED_FOLDER / f"{name_or_path.removesuffix('.gguf')}.gguf"
        if Path(name_or_path).name != name_or_path or not path.is_file():
            raise
    if only_copies:
        return copies_of(path, model_dir)
    # A link is removed, not what it leads to.
    folder = path.parent.resolve()
    if folder not in (model_dir.resolve(), (model_dir / CONVERTED_FOLDER).resolve()):
        raise SetupError(
            f"{path} is not in the model directory {model_dir}; remove it yourself if you mean it"
        )
    return [_model_file(path), *copies_of(path, model_dir)]


def users_of(files: Iterable[ModelFile], proc: Path = Path("/proc")) -> list[int]:
    """Processes that have mapped one of them, as far as this user may see. A worker that has a private
    copy of the weights in memory is none."""
    wanted: set[object] = set()
    for file in files:
        with suppress(OSError):
            wanted |= {_identity(file.path), str(file.path.resolve())}
    found = []
    for maps in proc.glob("[0-9]*/maps"):
        try:
            lines = maps.read_text(errors="replace").splitlines()
        except OSError:  # it has ended, or is another user's
            continue
        mapped = (line.split(maxsplit=5) for line in lines)
        # Some file systems tell another device there than of the file: its path will do.
        if any(wanted & {(line[4], line[3]), line[5]} for line in mapped if len(line) == 6):
            found.append(int(maps.parent.name))
    return sorted(found)


def _identity(path: Path) -> tuple[str, str]:
    status = path.stat()
    return str(status.st_ino), f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"


def _model_file(path: Path, source: str = "", digest: str = "") -> ModelFile:
    try:
        size_bytes = path.stat().st_size
        known = format_of(read_facts(path).file_type)
        return ModelFile(path, size_bytes, known.name if known else "other", source, digest)
    except (ServiceError, OSError):
        size_bytes = path.lstat().st_size
        return ModelFile(path, size_bytes, "damaged", source, digest)
