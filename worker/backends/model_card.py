"""What llama.cpp says of a model and a context that are loaded."""

import ctypes
from typing import Any

import llama_cpp as llama

_FLOAT_FTYPES = frozenset({0, 1, 32})  #: llama.h: F32, F16, BF16
_FTYPE_GUESSED = 1024  #: llama.h: a flag


def describe(model: Any) -> str:
    text = ctypes.create_string_buffer(256)
    llama.llama_model_desc(model, text, len(text))
    return text.value.decode(errors="replace")


def cell_bytes(model: Any) -> int:
    """Of the KV of one token, in f16."""
    head_dims = llama.llama_model_n_embd(model) // max(1, llama.llama_model_n_head(model))
    architecture = _metadata(model, "general.architecture")
    key_dims = int(_metadata(model, f"{architecture}.attention.key_length") or head_dims)
    value_dims = int(_metadata(model, f"{architecture}.attention.value_length") or head_dims)
    heads = llama.llama_model_n_layer(model) * llama.llama_model_n_head_kv(model)
    return int(heads * (key_dims + value_dims) * 2)


def is_float(model: Any) -> bool:
    """As its file says; single tensors may be of another type."""
    return (llama.llama_model_ftype(model) & ~_FTYPE_GUESSED) in _FLOAT_FTYPES


def can_forget(model: Any) -> bool:
    """Whether tokens can be taken out of a slot again: not out of a recurrent state."""
    return not (llama.llama_model_is_recurrent(model) or llama.llama_model_is_hybrid(model))


def state_key(context: Any, params: Any) -> dict[str, str | int | float]:
    """What a saved state depends on beside the weights: the build and its CPU features, and how the
    context was made. (llama.cpp refuses most foreign states, but not all of them.)"""
    return {
        "llama_cpp": llama.__version__,
        "features": llama.llama_print_system_info().decode(errors="replace"),
        "cells_per_slot": llama.llama_n_ctx_seq(context),
        "slots": llama.llama_n_seq_max(context),
        "type_k": params.type_k,
        "type_v": params.type_v,
        "flash_attn": params.flash_attn_type,
        "swa_full": int(params.swa_full),
        "kv_unified": int(params.kv_unified),
        "rope_scaling": params.rope_scaling_type,
        "rope_freq_base": params.rope_freq_base,
        "rope_freq_scale": params.rope_freq_scale,
    }


def _metadata(model: Any, key: str) -> str:
    value = ctypes.create_string_buffer(256)
    llama.llama_model_meta_val_str(model, key.encode(), value, len(value))
    return value.value.decode(errors="replace")
