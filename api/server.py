"""uvicorn's server, which tells where it listens and drains before it shuts down."""

import logging
import os
import socket
import time
from contextlib import suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

from api.deps import Gateway

log = logging.getLogger("api")

#: After the streams were ended: a client that does not even read its last bytes is cut.
GRACE_S = 5


class Server(uvicorn.Server):
    """Tells ``ready_fd`` its port once it serves. Told to stop, it drains before uvicorn shuts down,
    which would close the port and then wait for open streams."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, ready_fd: int | None) -> None:
        super().__init__(config)
        self._gateway_app = app
        self._ready_fd = ready_fd
        self._has_told = False

    @property
    def _gateway(self) -> Gateway | None:
        """``None`` before it has started."""
        return getattr(self._gateway_app.state, "gateway", None)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        assert sockets, "the port was taken before"
        host, port = sockets[0].getsockname()[:2]
        log.info("listening on http://%s:%d", f"[{host}]" if ":" in host else host, port)
        if self._ready_fd is not None:
            with suppress(OSError), os.fdopen(self._ready_fd, "w") as ready:
                ready.write(f"ready {port}\n")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        gateway = self._gateway
        is_first = gateway is not None and not gateway.drain.is_requested
        if gateway:
            gateway.drain.request(time.monotonic())
        if not is_first:
            self.config.timeout_graceful_shutdown = 1  # of a client that does not read
            super().handle_exit(sig, frame)

    def stop_admitting(self, _number: int, _frame: FrameType | None) -> None:
        """A signal handler: the pool drains, and this gateway stays to tell how its jobs end."""
        if self._gateway:
            self._gateway.drain.stop_admitting()

    async def on_tick(self, counter: int) -> bool:
        gateway = self._gateway
        if gateway and gateway.drain.is_requested:
            gateway.board.close()  # whoever watches is for no job's sake here
            num_followers = gateway.hub.num_followers
            self._tell(num_followers, gateway.drain.grace_s)
            if gateway.drain.is_over(num_followers, time.monotonic()):
                self.should_exit = True
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._gateway:
            self._gateway.hub.close()
            self._gateway.board.close()
        await super().shutdown(sockets)

    def _tell(self, num_followers: int, grace_s: float) -> None:
        if num_followers and not self._has_told:
            log.info("stopping: %d clients may follow on for %g s", num_followers, grace_s)
        self._has_told = True
