"""One question to a running service, asked again while it is busy or away for a moment."""

import sys
import time
from collections.abc import Callable

import httpx

from cli.service import MAX_OUTAGE_S, RETRY_PAUSE_S, RequestFailed, message_of, retry_after_s

_PASSING = (429, 503)


def ask(client: httpx.Client, send: Callable[[], httpx.Response]) -> httpx.Response:
    """Its answer, which is a good one. Where nothing listens at all, that is said at once."""
    end_s = time.monotonic() + MAX_OUTAGE_S
    while True:
        try:
            response = send()
        except httpx.ConnectError:
            raise RequestFailed(nothing_answers(client)) from None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise RequestFailed(f"{client.base_url}: {error}") from None
        except httpx.TransportError as error:
            wait_s, problem = RETRY_PAUSE_S, f"{client.base_url}: {error or type(error).__name__}"
        else:
            if response.is_success:
                return response
            problem = message_of(response)
            if response.status_code not in _PASSING:
                raise RequestFailed(problem)
            wait_s = retry_after_s(response)
        if time.monotonic() + wait_s > end_s:
            raise RequestFailed(problem)
        print(f"{problem} Trying again in {wait_s:g} s.", file=sys.stderr)
        time.sleep(wait_s)


def nothing_answers(client: httpx.Client) -> str:
    return f"nothing answers at {client.base_url}; start it with: make up (or: mini-vllm up)"
