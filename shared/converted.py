"""Where copies of a model in other weight formats are kept, and which file a format stands for.

Making them is the command line's work.
"""

from pathlib import Path

from shared.content_hash import content_hash
from shared.errors import SetupError, UnknownModel
from shared.gguf_header import read_facts
from shared.models import KNOWN_MODELS, ResolvedModel
from shared.weight_formats import AS_IS, known_format, plain_type

#: Below the model directory.
CONVERTED_FOLDER = "converted"
HASHES_FOLDER = ".hashes"
HASH_CHARS = 12


def converted_path(source: Path, to: str, model_dir: Path) -> Path:
    """Of a copy of exactly this file. It need not be there. Raises ``SetupError``."""
    name = known_format(to).name
    folder = model_dir / CONVERTED_FOLDER
    try:
        digest = content_hash(source, folder / HASHES_FOLDER)
    except OSError as error:
        raise SetupError(f"{source} cannot be read: {error.strerror}") from None
    return folder / f"{source.stem}.{digest[:HASH_CHARS]}.{name}.gguf"


def weights_path(model: ResolvedModel, weight_format: str, model_dir: Path) -> Path:
    """The file that workers load. Raises ``UnknownModel`` where it has still to be made."""
    if weight_format == AS_IS or has_format(model.path, weight_format):
        return model.path
    path = converted_path(model.path, weight_format, model_dir)
    if path.is_file():
        return path
    known = KNOWN_MODELS.get(model.name)
    name = model.name if known and known.file_name == model.path.name else str(model.path)
    raise UnknownModel(
        f"the model {model.name} is not here as {weight_format} yet ({path} is missing); "
        f"`mini-vllm model convert {name} --to {weight_format}` makes it"
    )


def has_format(source: Path, weight_format: str) -> bool:
    """Whether the file itself is of that format, so that no copy is needed. Raises ``ModelUnusable``."""
    file_type = read_facts(source).file_type
    return file_type is not None and plain_type(file_type) == known_format(weight_format).file_type
