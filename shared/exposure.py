"""Whether a gateway may be reached from where it is: beyond loopback only with API keys."""

import ipaddress
import socket

from shared.errors import SetupError
from shared.settings import Settings


def check_exposure(settings: Settings) -> None:
    """Raises ``SetupError``."""
    if settings.insecure or has_keys(settings):
        return
    if settings.publish:
        if not is_loopback_address(settings.publish):
            raise SetupError(
                f"MINI_VLLM_PUBLISH={settings.publish!r} can be reached from other machines, and no "
                "API keys are set: set MINI_VLLM_API_KEYS (`mini-vllm key` makes one), or "
                "MINI_VLLM_INSECURE=1 if anybody may use this service"
            )
    elif not is_loopback(settings.host):
        raise SetupError(
            f"host {settings.host!r} can be reached from other machines, and no API keys are set: "
            "set MINI_VLLM_API_KEYS, or say --insecure if anybody may use this service"
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


def is_loopback_address(text: str) -> bool:
    """Of a published port: an address, never a name, since it is resolved elsewhere than here."""
    try:
        return ipaddress.ip_address(text.strip("[]")).is_loopback
    except ValueError:
        return False
