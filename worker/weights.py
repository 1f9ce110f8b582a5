"""Which weights a worker has loaded, for its reports and its jobs."""

from pathlib import Path

from shared.content_hash import content_hash
from shared.errors import ModelUnusable
from shared.gguf_header import read_facts
from shared.protocol import Weights
from shared.weight_formats import format_of

#: Below the host directory: what files hash to, so that each is read once.
HASHES_FOLDER = "hashes"
_FINGERPRINT_CHARS = 16


def weights_of(path: Path, host_dir: Path) -> Weights:
    known = format_of(read_facts(path).file_type)
    try:
        digest = content_hash(path, host_dir / HASHES_FOLDER)
    except OSError as error:
        raise ModelUnusable(f"{path} cannot be read: {error.strerror}") from None
    return Weights(format=known.name if known else "other", fingerprint=digest[:_FINGERPRINT_CHARS])
