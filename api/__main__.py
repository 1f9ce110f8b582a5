"""``python -m api``: reads the settings, takes the port, serves until it is told to stop."""

import argparse
import logging
import signal
import socket
import sys
from contextlib import suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

from api.app import create_app
from api.http_protocol import bounded_http
from api.server import GRACE_S, Server
from shared.errors import ServiceError
from shared.exit_codes import EXIT_CONFIG
from shared.exposure import check_exposure
from shared.logs import begin_logging, configure_logging, say
from shared.settings import Settings, load_settings

_BACKLOG = 2048


def main() -> int:
    options = _parser().parse_args()
    begin_logging("gateway")
    ready_fd = options.ready_fd
    given = {k: v for k, v in vars(options).items() if v is not None and k != "ready_fd"}
    try:
        settings = load_settings(**given)
        check_exposure(settings)
        app = create_app(settings)
    except ServiceError as error:
        say(error.message, level=logging.CRITICAL)
        return EXIT_CONFIG
    configure_logging("gateway", settings.log_level, settings.log_format)
    try:
        listener = _listen(settings)
    except (OSError, UnicodeError) as error:
        reason = str(getattr(error, "strerror", None) or error).split(" (while", 1)[0]
        where = f"{settings.host}:{settings.port}"
        say(f"cannot listen on {where}: {reason}", level=logging.CRITICAL)
        return 1
    signal.signal(signal.SIGTERM, _exit)  # uvicorn raises the signal again when it has stopped
    server = Server(_config(app, settings), app, ready_fd)
    signal.signal(signal.SIGUSR1, server.stop_admitting)
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    return 0


def _config(app: FastAPI, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=bounded_http(settings),
        log_config=None,
        access_log=False,
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
    parser.add_argument(
        "--insecure",
        action="store_true",
        default=None,
        help="listen beyond loopback without API keys (MINI_VLLM_INSECURE)",
    )
    parser.add_argument("--ready-fd", type=int, help="file descriptor that gets `ready PORT`")
    return parser


if __name__ == "__main__":
    sys.exit(main())
