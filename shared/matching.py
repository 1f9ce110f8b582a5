"""How llguidance is used: with which limits, and how its errors are told. Pure.

One mask is computed for each token of each sequence, in the step that all sequences share, so what one
of them may take is bounded: llguidance counts items and fuel, which is the same on every machine.
"""

from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper

#: llguidance does some 80 items in a ms here; its own limit of 50,000 was seen to take 650 ms.
LIMITS = LLParserLimits(
    max_items_in_row=1_000,
    step_max_items=4_000,
    step_lexer_fuel=100_000,
    verbose_errors=False,
)
_REASON_CHARS = 500


class _Bytes:
    """A vocabulary of the 256 bytes and an end, in which anything can be said."""

    eos_token_id = bos_token_id = 256
    tokens = tuple(bytes([byte]) for byte in range(256)) + (b"\xff<end>",)
    special_token_ids = (256,)

    def __call__(self, text: str | bytes) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


_BYTES = LLTokenizer(TokenizerWrapper(_Bytes()))


def problem_of(grammar: str) -> str:
    """'' if an answer can begin by it. It is compiled, and looked at for the first byte."""
    matcher = LLMatcher(_BYTES, grammar, log_level=0, limits=LIMITS)
    if not matcher.is_error():
        matcher.compute_bitmask()
    if matcher.is_error():
        return reason_of(matcher)
    if matcher.is_stopped() and not matcher.is_accepting():
        return "no answer can fit it"
    return ""


def reason_of(matcher: LLMatcher) -> str:
    """Why it is in error, without what only llguidance's makers want to know."""
    reason = matcher.get_error().partition("\n<")[0].strip()
    if reason in ("NoExtension", "NoExtensionBias"):
        return "no answer can fit it"
    return reason[:_REASON_CHARS]
