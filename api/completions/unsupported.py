"""Parameters of OpenAI's API, and of servers that speak it, that are not honoured here. Pure.

Each is taken with the values that change nothing, and refused by name with any other.
"""

from collections.abc import Mapping
from typing import Any

from api.validation import InvalidRequest, Problem
from shared.errors import UnsupportedParameter

#: The neutral values of each; ``null`` is one of any.
_BOTH: dict[str, tuple[Any, ...]] = {
    "metadata": ({},),
    "store": (False,),
    "prompt_cache_key": (),
    "prompt_cache_retention": (),
    "safety_identifier": (),
    "moderation": (),
    "typical_p": (1,),
    "mirostat": (0,),
    "min_tokens": (0,),
    "stop_token_ids": ([],),
    "bad_words": ([],),
    "length_penalty": (1,),
    "use_beam_search": (False,),
    "skip_special_tokens": (True,),
    "cache_prompt": (True,),
    "json_schema": (),
    "guided_json": (),
    "guided_grammar": (),
    "guided_regex": (),
    "guided_choice": (),
    "structured_outputs": (),
}
_CHAT: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "modalities": (["text"],),
    "prediction": (),
    "web_search_options": (),
    "reasoning_effort": ("none",),
    "verbosity": (),
    "functions": ([],),
    "function_call": ("none",),
    "chat_template": (),
    "chat_template_kwargs": ({},),
    "add_generation_prompt": (True,),
    "continue_final_message": (False,),
    "best_of": (1,),
}
_COMPLETION: dict[str, tuple[Any, ...]] = {"echo": (False,), "suffix": ("",), "best_of": (1,)}

NEUTRAL = {"/v1/chat/completions": _BOTH | _CHAT, "/v1/completions": _BOTH | _COMPLETION}


def check_supported(endpoint: str, extra: Mapping[str, Any], num_choices: int) -> None:
    """``extra`` are the fields that the body has and its model has not. Raises ``InvalidRequest`` for
    what nobody knows, and ``UnsupportedParameter``."""
    known = NEUTRAL[endpoint]
    unknown = [name[:100] for name in extra if name not in known]
    if unknown:
        raise InvalidRequest([Problem(name, f"unknown field `{name}`") for name in unknown[:20]])
    for name, value in extra.items():
        neutral = (num_choices,) if name == "best_of" else known[name]
        if value is not None and not any(_is_same(value, other) for other in neutral):
            raise UnsupportedParameter(f"`{name}` is not supported{_taken(neutral)}", field=name)


def _is_same(value: object, neutral: object) -> bool:
    """``False`` is no 0 here; 1.0 is 1, as in JSON."""
    return isinstance(value, bool) is isinstance(neutral, bool) and value == neutral


def _taken(neutral: tuple[Any, ...]) -> str:
    shown = [str(v).lower() if isinstance(v, bool) else repr(v) for v in neutral]
    return f"; it may be {' or '.join([*shown, 'null'])}" if shown else ""
