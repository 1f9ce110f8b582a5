"""What `batch run` remembers beside its output, so that the same command goes on after whatever ended it."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

from cli.service import RequestFailed

_PIECE_BYTES = 1_048_576


@dataclass(slots=True)
class BatchState:
    """``key`` makes a repeated creation the same batch."""

    path: Path
    url: str
    input_sha256: str
    key: str
    file_id: str = ""
    batch_id: str = ""

    @classmethod
    def load(cls, source: Path, output: Path, url: str) -> "BatchState":
        """That of a run before, or a new one. Raises ``RequestFailed`` if it was of something else."""
        path = output.with_name(output.name + ".batch")
        digest = _sha256(source)
        try:
            fields = json.loads(path.read_text())
            known = cls(path=path, **fields)
        except FileNotFoundError:
            return cls(path=path, url=url, input_sha256=digest, key=uuid4().hex)
        except (ValueError, TypeError):
            raise RequestFailed(f"{path} is damaged; remove it to begin anew") from None
        if (known.input_sha256, known.url) != (digest, url):
            which = "another input" if known.url == url else f"the service at {known.url}"
            raise RequestFailed(
                f"{output} is being made from {which} ({path}, batch {known.batch_id or 'none yet'}); "
                "choose another output, or remove that file to begin anew"
            )
        return known

    def save(self) -> None:
        fields = {name: value for name, value in asdict(self).items() if name != "path"}
        fresh = self.path.with_name(self.path.name + ".new")
        with fresh.open("w") as file:
            json.dump(fields, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)

    def begin_anew(self) -> None:
        self.key, self.file_id, self.batch_id = uuid4().hex, "", ""
        self.save()

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            found.update(piece)
    return found.hexdigest()
