"""What a measurement holds for: this CPU with so many cores, and this build of llama.cpp."""

import hashlib
import importlib.metadata
import importlib.util
import os
import platform
from contextlib import suppress
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
#: What tells CPUs apart: x86, then ARM, which has no names.
_FIELDS = ("model name", "cpu family", "model", "stepping", "CPU implementer", "CPU part")


def cpu_model(cpuinfo: Path = _CPUINFO) -> str:
    """With the numbers of its kind: clouds give one name to several."""
    fields: dict[str, str] = {}
    with suppress(OSError):
        for line in cpuinfo.read_text().splitlines():
            name, separator, value = line.partition(":")
            if separator and name.strip() in _FIELDS:
                fields.setdefault(name.strip(), value.strip())
    name = fields.pop("model name", platform.processor() or platform.machine())
    numbers = " ".join(f"{key.split()[-1]} {value}" for key, value in fields.items())
    return f"{name} ({numbers})" if numbers else name


def llama_build() -> str:
    """Version, and a hash of the libraries: one version is built for many CPUs."""
    try:
        version = importlib.metadata.version("llama-cpp-python")
    except importlib.metadata.PackageNotFoundError:
        return "none"
    digest = hashlib.blake2b(digest_size=6)
    for path in sorted(_library_folder().glob("*.so*")):
        with suppress(OSError), path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"{version}-{digest.hexdigest()}"


def _library_folder() -> Path:
    """Without loading it."""
    if given := os.environ.get("LLAMA_CPP_LIB_PATH"):
        return Path(given)
    spec = importlib.util.find_spec("llama_cpp")
    places = list(spec.submodule_search_locations or []) if spec else []
    return Path(places[0]) / "lib" if places else Path(os.devnull)
