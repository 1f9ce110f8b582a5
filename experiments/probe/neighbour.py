"""``python -m experiments.probe.neighbour CORE``: another program that wants one core, all of the time, until
its input is closed."""

import os
import sys
import threading


def main(arguments: list[str]) -> int:
    os.sched_setaffinity(0, {int(arguments[0])})
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    is_over = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        is_over.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    number = 1
    while not is_over.is_set():
        for _ in range(10_000):
            number = (number * 1103515245 + 12345) % 2**31
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
