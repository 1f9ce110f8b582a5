"""What is known of a stored file, and how OpenAI's clients are told. Pure."""

import re
import secrets
from typing import Any, Literal

from shared.protocol import Frozen

FILE_ID = re.compile(r"file-[0-9a-f]{32}")

Purpose = Literal["batch", "batch_output"]


def new_file_id() -> str:
    return f"file-{secrets.token_hex(16)}"


class FileRecord(Frozen):
    id: str
    owner: str  #: '' for one that was uploaded without a key
    filename: str
    purpose: Purpose
    bytes: int
    created_s: int
    expires_s: int

    def to_object(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "file",
            "bytes": self.bytes,
            "created_at": self.created_s,
            "expires_at": self.expires_s,
            "filename": self.filename,
            "purpose": self.purpose,
            "status": "processed",
            "status_details": None,
        }
