"""The real model of the tests, and copies of it in other formats (made once, kept in a cache)."""

import ctypes
import os
from pathlib import Path

# Two threads that spin beside any other busy process are thirteen times slower than two that sleep.
# OpenMP reads this when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import llama_cpp as llama

from worker.backends.llama import LlamaBackend

FTYPES = {"F16": 1, "Q4_0": 2, "Q8_0": 7, "Q4_K_M": 15, "BF16": 32}  #: llama.h: enum llama_ftype
GGML_TYPE_F16 = 1
AS_SHIPPED = "Q4_1"
DEFAULT_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


def model_path() -> Path:
    """The default model, or MINI_VLLM_TEST_MODEL. A test that asks for it fails without it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    default = cache / "mini-vllm" / "models" / DEFAULT_NAME
    path = Path(os.environ.get("MINI_VLLM_TEST_MODEL") or default)
    assert path.is_file(), f"the tests need the model {path}: run `make test`, which fetches it"
    return path


def model_as(format_name: str, directory: Path) -> Path:
    """The default model in another format; made in ``directory`` unless it is there already, and
    there only when it is whole, so processes may share the directory. "Q4_0 and F16" has its
    embeddings, which are its output matrix too, in F16."""
    source = model_path()
    if format_name == AS_SHIPPED:
        return source
    target = directory / f"{source.stem}-as-{format_name.replace(' ', '-')}.gguf"
    if not target.exists():
        quantize(source, target, format_name)
    return target


def quantize(source: Path, target: Path, format_name: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}.part")
    params = llama.llama_model_quantize_default_params()
    params.ftype = FTYPES[format_name.split(" and ")[0]]
    if format_name.endswith(" and F16"):
        params.output_tensor_type = params.token_embedding_type = GGML_TYPE_F16
    params.nthread = 1
    params.allow_requantize = True
    params.pure = False
    llama.llama_log_set(_silence, ctypes.c_void_p(0))
    try:
        code = llama.llama_model_quantize(bytes(source), bytes(partial), ctypes.byref(params))
        assert code == 0, f"quantizing to {format_name} failed with code {code}"
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)


def truncate_slot(backend: LlamaBackend, slot: int, num_tokens: int) -> None:
    """Forgets what stands in ``slot`` after its first ``num_tokens``."""
    backend.forget(slot, num_tokens)


@llama.llama_log_callback  # type: ignore[untyped-decorator]
def _silence(level: int, text: bytes, data: object) -> None:
    pass
