"""The library itself: started once per process, what it logs, and what it was built with."""

import ctypes
import logging

import llama_cpp as llama

from shared.settings import WeightsSharing

logger = logging.getLogger(__name__)

LOG_LEVEL_ERROR = 4

_errors: list[str] = []  #: what llama.cpp said since ``forget_errors``


@llama.llama_log_callback  # type: ignore[untyped-decorator]
def _forward_log(level: int, text: bytes, _data: object) -> None:
    line = text.decode(errors="replace").rstrip()
    if level == LOG_LEVEL_ERROR and line:
        _errors.append(line)
    if line.strip("."):
        logger.debug("%s", line)


def start() -> None:
    """Again is harmless."""
    llama.llama_log_set(_forward_log, ctypes.c_void_p(0))
    llama.llama_backend_init()


def forget_errors() -> None:
    _errors.clear()


def first_error(otherwise: str) -> str:
    """What went wrong first, in llama.cpp's words where it has some."""
    return _errors[0] if _errors else otherwise


def load_params(sharing: WeightsSharing) -> llama.llama_model_params:
    """``shared`` goes without the faster copy that some formats are repacked into."""
    params = llama.llama_model_default_params()
    if sharing == "shared":
        params.load_mode, params.use_extra_bufts = llama.LLAMA_LOAD_MODE_MMAP, False
    elif sharing == "private":
        params.load_mode = llama.LLAMA_LOAD_MODE_NONE
    return params


def system_info() -> str:
    """What it was compiled for and with. An illegal instruction where that is another CPU."""
    text: str = llama.llama_print_system_info().decode(errors="replace")
    return text.strip()


def is_built_with(feature: str) -> bool:
    """Whether llama.cpp was compiled for CPUs that have it. Asks functions that do nothing but say
    so: its ``llama_print_system_info`` itself needs what it names."""
    ask = getattr(llama.llama_cpp._lib, f"ggml_cpu_has_{feature.lower()}", None)
    return ask is not None and bool(ask())
