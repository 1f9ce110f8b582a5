"""Questions that are asked without a gateway, and a vocabulary that has a text for every number."""

from shared.asks import ApplyTemplate, Ask, Detokenize, Tokenize
from worker.backends.scripted import ScriptedBackend


def ask_of(
    question: Tokenize | Detokenize | ApplyTemplate, *, ask_id: str = "1", deadline_ms: int = 10**13
) -> Ask:
    return Ask(
        ask_id=ask_id,
        gateway_id="g",
        deadline_ms=deadline_ms,
        tokenize=question if isinstance(question, Tokenize) else None,
        detokenize=question if isinstance(question, Detokenize) else None,
        apply_template=question if isinstance(question, ApplyTemplate) else None,
    )


class EndlessVocabulary(ScriptedBackend):
    def text_bytes(self, token: int) -> bytes:
        return str(token).encode()
