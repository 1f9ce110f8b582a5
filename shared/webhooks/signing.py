"""The headers of Standard Webhooks (https://www.standardwebhooks.com): a receiver can tell that a
delivery is ours, when it was sent, and by its id whether it has come before. Pure."""

import base64
import binascii
import hashlib
import hmac

_PREFIX = "whsec_"
MIN_SECRET_BYTES = 16


def secret_bytes(secret: str) -> bytes:
    """``whsec_`` and base64, or any text. Raises ``ValueError``."""
    if secret.startswith(_PREFIX):
        encoded = secret.removeprefix(_PREFIX)
        try:
            key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
        except binascii.Error:
            raise ValueError("must be base64 after `whsec_`") from None
    else:
        key = secret.encode()
    if len(key) < MIN_SECRET_BYTES:
        raise ValueError(f"must have at least {MIN_SECRET_BYTES} bytes (has {len(key)})")
    return key


def signed_headers(key: bytes, delivery_id: str, at_s: int, body: bytes) -> dict[str, str]:
    signed = f"{delivery_id}.{at_s}.".encode() + body
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": f"v1,{signature}",
    }
