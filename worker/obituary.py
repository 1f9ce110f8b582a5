"""What a worker that cannot start leaves behind: one line in its log, and in Redis for /ready."""

import logging
import socket
from contextlib import closing
from threading import Thread

from shared.connection import connect
from shared.failures import report_failure
from shared.logs import say
from shared.models import model_name
from shared.settings import load_basics

log = logging.getLogger("worker")

#: A Redis that hangs, or a name that nobody resolves, is not waited for any longer.
_PATIENCE_S = 3.0
_ANSWER_S = 1.0


def publish_failure(name: str, message: str, given: dict[str, object]) -> None:
    """``given``: settings from the command line. If Redis cannot be told, the log is all there is."""
    say(message, head=f"{name}: error: ", level=logging.CRITICAL)
    # NOTE: in a thread, as nothing bounds how long a name is resolved.
    teller = Thread(target=_tell_redis, args=(name, message, given), daemon=True)
    teller.start()
    teller.join(_PATIENCE_S)


def _tell_redis(name: str, message: str, given: dict[str, object]) -> None:
    basics = {key: value for key, value in given.items() if key in ("redis_url", "model")}
    try:
        settings = load_basics(**basics)
        model, host = model_name(settings.model), socket.gethostname()
        with closing(connect(settings.redis_url, timeout_s=_ANSWER_S)) as client:
            report_failure(client, name=name, host=host, model=model, message=message)
    except Exception as error:  # the line is in the log already, and nothing else is left to do
        log.debug("Redis was not told: %s", error)
