"""``python -m api``: reads the settings, takes the port, serves until it is told to stop."""

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

from api.app import create_app
from api.http_protocol import bounded_http
from shared.errors import ServiceError
from shared.logs import configure_logging
from shared.settings import Settings, load_settings

log = logging.getLogger("api")

EX_CONFIG = 78
#: uvicorn would wait for open streams for ever: they are ended after a while, and their clients
#: resume. What is open still after GRACE_S is cut.
STREAM_GRACE_S = 2
GRACE_S = 5
_BACKLOG = 2048


class Server(uvicorn.Server):
    """Tells ``ready_fd`` its port once it serves, and ends streams when it stops."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, ready_fd: int | None) -> None:
        super().__init__(config)
        self._gateway_app = app
        self._ready_fd = ready_fd

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        assert sockets, "the port was taken before"
        host, port = sockets[0].getsockname()[:2]
        log.info("listening on http://%s:%d", f"[{host}]" if ":" in host else host, port)
        if self._ready_fd is not None:
            with suppress(OSError), os.fdopen(self._ready_fd, "w") as ready:
                ready.write(f"ready {port}\n")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        hub = self._gateway_app.state.gateway.hub
        asyncio.get_running_loop().call_later(STREAM_GRACE_S, hub.close)
        await super().shutdown(sockets)


def main() -> int:
    options = _parser().parse_args()
    ready_fd = options.ready_fd
    given = {k: v for k, v in vars(options).items() if v is not None and k != "ready_fd"}
    try:
        settings = load_settings(**given)
    except ServiceError as error:
        sys.stderr.write(f"{error.message}\n")
        return EX_CONFIG
    configure_logging("gateway", settings.log_level)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    try:
        listener = _listen(settings)
    except (OSError, UnicodeError) as error:
        reason = str(getattr(error, "strerror", None) or error).split(" (while", 1)[0]
        sys.stderr.write(f"cannot listen on {settings.host}:{settings.port}: {reason}\n")
        return 1
    signal.signal(signal.SIGTERM, _exit)  # uvicorn raises the signal again when it has stopped
    with suppress(KeyboardInterrupt):
        app = create_app(settings)
        Server(_config(app, settings), app, ready_fd).run(sockets=[listener])
    return 0


def _config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=bounded_http(settings),
        log_config=None,
        access_log=settings.log_level == "debug",
        timeout_graceful_shutdown=GRACE_S,
        lifespan="on",
        server_header=False,
    )


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    return socket.create_server((settings.host, settings.port), family=family, backlog=_BACKLOG)


def _exit(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m api", description=__doc__)
    parser.add_argument("--host", help="address to listen on (MINI_VLLM_HOST)")
    parser.add_argument("--port", help="0 takes a free one (MINI_VLLM_PORT)")
    parser.add_argument("--redis-url", help="MINI_VLLM_REDIS_URL")
    parser.add_argument("--model", help="known name or path, as the workers have it")
    parser.add_argument("--ready-fd", type=int, help="file descriptor that gets `ready PORT`")
    return parser


if __name__ == "__main__":
    sys.exit(main())
