"""``expires_after`` of OpenAI's API: when a file ends. Pure."""

from typing import Literal

from pydantic import Field

from shared.errors import BadRequest
from shared.protocol import Frozen

LEAST_S, MOST_S = 3600, 2_592_000


class ExpiresAfter(Frozen):
    anchor: Literal["created_at"]
    seconds: int = Field(ge=LEAST_S, le=MOST_S)


def read_expiry(fields: dict[str, str]) -> int | None:
    """Seconds after its creation; ``None`` where the form says nothing. Raises ``BadRequest``."""
    anchor, text = fields.get("expires_after[anchor]"), fields.get("expires_after[seconds]")
    if anchor is None and text is None:
        return None
    if anchor != "created_at":
        name = "expires_after[anchor]"
        raise BadRequest(f"{name}: must be 'created_at'", field=name)
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 10
    if text is None or not is_number or not LEAST_S <= int(text) <= MOST_S:
        name = "expires_after[seconds]"
        raise BadRequest(f"{name}: must be from {LEAST_S} to {MOST_S}", field=name)
    return int(text)
