"""The logs of every process, on stderr: one format, one level, one line per event; never prompts.

Other libraries are heard from a warning on, in the same format. What goes wrong outside of any ``try``
is an event as well.
"""

import logging
import os
import sys
import threading
from types import TracebackType
from typing import Literal

from shared.logs.context import about, concerning, note, note_job
from shared.logs.formats import JsonFormat, TextFormat

Level = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]

__all__ = [
    "Level",
    "LogFormat",
    "about",
    "begin_logging",
    "concerning",
    "configure_logging",
    "is_json",
    "note",
    "note_job",
    "say",
    "set_level",
]

#: The packages whose level is the setting's.
_OURS = ("api", "cli", "shared", "worker")
#: They have handlers of their own where uvicorn is started by its command.
_UVICORN = ("uvicorn", "uvicorn.error", "uvicorn.access")

log = logging.getLogger(__name__)


def configure_logging(process: str, level: Level, log_format: LogFormat, **constants: str) -> None:
    """``constants`` are fields of every line of this process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter((JsonFormat if log_format == "json" else TextFormat)(process, constants))
    logging.getLogger().handlers[:] = [handler]
    for name in _UVICORN:
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    # Its lines have the query, and ours say the same.
    logging.getLogger("uvicorn.access").disabled = True
    logging.captureWarnings(True)
    # What logging says of a line that it cannot write would have the line's arguments.
    logging.raiseExceptions = False
    sys.excepthook = _on_uncaught
    threading.excepthook = _on_uncaught_in_thread
    set_level(level)


def begin_logging(process: str) -> None:
    """Before the settings are read: a bad one is told in the format that was asked for."""
    is_json = os.environ.get("MINI_VLLM_LOG_FORMAT") == "json"
    configure_logging(process, "info", "json" if is_json else "text")


def set_level(level: Level) -> None:
    number = logging.getLevelNamesMapping()[level.upper()]
    for name in _OURS:
        logging.getLogger(name).setLevel(number)
    logging.getLogger().setLevel(max(number, logging.WARNING))


def is_json() -> bool:
    return any(isinstance(h.formatter, JsonFormat) for h in logging.getLogger().handlers)


def say(message: str, *, head: str = "", level: int = logging.INFO) -> None:
    """What people at a terminal read as it is, after ``head``, and programs as an event."""
    if is_json():
        log.log(level, "%s", message)
    else:
        sys.stderr.write(f"{head}{message}\n")
        sys.stderr.flush()


def _on_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        log.critical("ended by what nobody caught", exc_info=(kind, error, trace))


def _on_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
        name = args.thread.name if args.thread else "?"
        what = (args.exc_type, args.exc_value, args.exc_traceback)
        log.critical("thread %s ended by what nobody caught", name, exc_info=what)
