"""A running service as a command line reaches it: the client, and how what it refuses is said."""

import httpx

from shared.errors import ServiceError

#: What breaks is taken up again; so long may the service be away.
MAX_OUTAGE_S = 60.0
RETRY_PAUSE_S = 0.5
#: Longer than the gateway's keep-alive comments.
_SILENCE_TIMEOUT_S = 60.0


class RequestFailed(ServiceError):
    """The service did not do what was asked."""

    code = "request_failed"


def make_client(url: str, api_key: str | None) -> httpx.Client:
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    timeout = httpx.Timeout(30, read=_SILENCE_TIMEOUT_S)
    try:
        return httpx.Client(base_url=url, timeout=timeout, headers=headers)
    except UnicodeEncodeError:
        raise RequestFailed("--api-key: must be ASCII") from None
    except httpx.InvalidURL as error:
        raise RequestFailed(f"--url {url}: {error}") from None


def retry_after_s(response: httpx.Response) -> float:
    text = response.headers.get("retry-after", "")
    return float(text) if text.isdigit() else RETRY_PAUSE_S


def message_of(response: httpx.Response) -> str:
    try:
        error = response.json()["error"]
        details = [detail["message"] for detail in error.get("details") or []]
        return "; ".join(details) or str(error["message"])
    except (ValueError, KeyError, TypeError):
        return f"the service answered {response.status_code}"
