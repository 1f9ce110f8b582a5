"""Whether a gateway may listen where it is told to: beyond loopback only with API keys."""

import ipaddress
import socket

from shared.errors import SetupError
from shared.settings import Settings


def check_exposure(settings: Settings) -> None:
    """Raises ``SetupError``."""
    if settings.insecure or has_keys(settings) or is_loopback(settings.host):
        return
    raise SetupError(
        f"host {settings.host!r} can be reached from other machines, and no API keys are set: set "
        "MINI_VLLM_API_KEYS, or say --insecure if anybody may use this service"
    )


def has_keys(settings: Settings) -> bool:
    texts = (settings.api_keys, settings.admin_keys)
    files = (settings.api_keys_file, settings.admin_keys_file)
    return any(split_keys(text.get_secret_value()) for text in texts) or any(files)


def split_keys(text: str) -> list[str]:
    """Keys that are separated by commas."""
    return [key for part in text.split(",") if (key := part.strip())]


def is_loopback(host: str) -> bool:
    """Also for a name that cannot be resolved: whoever binds to it says what is wrong."""
    if not host:
        return False
    try:
        rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return True
    return all(ipaddress.ip_address(str(row[4][0]).split("%")[0]).is_loopback for row in rows)
