"""One log format for every process: time, process name, level, one line per event; never prompts."""

import logging
import sys


def configure_logging(process_name: str, level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        logging.Formatter(
            f"%(asctime)s {process_name} %(levelname)s %(name)s: %(message)s", "%H:%M:%S"
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
