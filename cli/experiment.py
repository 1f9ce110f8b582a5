"""`mini-vllm experiment`: the experiments stand on the command line's floor and above it, so they are
started by name, as `up` starts workers, and never imported. This process becomes theirs."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn


def become_experiment(arguments: Sequence[str]) -> NoReturn:
    sys.stdout.flush()
    command = [sys.executable, "-P", "-m", "experiments", *arguments]
    os.execv(sys.executable, command)
