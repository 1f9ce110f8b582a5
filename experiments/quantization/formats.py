"""Which formats are compared, and which of them the others are judged by. Pure."""

from collections.abc import Sequence

from shared.errors import SetupError
from shared.gguf_header import ModelFacts
from shared.weight_formats import AS_IS, format_of, is_upcast, known_format

_FULL = ("f16", "bf16", "q8_0", "q4_k_m", "q4_0", "iq4_nl")
_QUICK = ("bf16", "q4_0")


def chosen_formats(facts: ModelFacts, asked: Sequence[str], *, is_quick: bool) -> tuple[str, ...]:
    """The model's own file first; no format twice. Raises ``SetupError``."""
    own = own_format(facts)
    names = [known_format(name, "--formats").name for name in asked if name != AS_IS]
    if asked and len(set(names) - {own}) + 1 < 2:
        raise SetupError(
            f"--formats: one beside the model's own ({own}) is needed to compare", field="--formats"
        )
    wanted = names or (_QUICK if is_quick else _FULL)
    return (AS_IS, *dict.fromkeys(name for name in wanted if name != own))


def own_format(facts: ModelFacts) -> str:
    known = format_of(facts.file_type)
    return known.name if known else "other"


def reference_of(facts: ModelFacts, formats: Sequence[str]) -> str:
    """The one that loses nothing of the file and rounds least while it computes: an upcast to F16 before
    one to BF16, else the file itself."""
    if facts.file_type is not None:
        for name in ("f32", "f16", "bf16"):
            if name in formats and is_upcast(facts.file_type, name):
                return name
    return AS_IS
