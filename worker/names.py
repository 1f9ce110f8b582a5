"""What a worker may be called: its name stands in logs, in Redis keys and in a file's name."""

import os
import re
from argparse import ArgumentTypeError

_FITTING = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def host_name() -> str:
    """This host's, without what does not fit."""
    name = re.sub(r"^[^A-Za-z0-9]+|[^A-Za-z0-9._-]", "", os.uname().nodename)
    return name[:64] or "worker"


def fitting_name(text: str) -> str:
    if not _FITTING.fullmatch(text):
        raise ArgumentTypeError(
            f"{text!r}: give up to 80 of A-Z a-z 0-9 . _ -, a letter or a digit first"
        )
    return text
