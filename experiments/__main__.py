"""``python -m experiments``: what `mini-vllm experiment` runs."""

import os
import sys

from experiments.app import app
from shared.errors import ServiceError

EXIT_FAILED = 1


def main() -> None:
    try:
        app(prog_name="mini-vllm experiment")
    except ServiceError as error:
        print(f"error: {error.message}", file=sys.stderr)
        sys.exit(EXIT_FAILED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(EXIT_FAILED)


if __name__ == "__main__":
    main()
