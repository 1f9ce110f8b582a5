"""``python -m experiments.probe.build``: what llama.cpp was built with, in its own words. It is a process of
its own because its code may be for another CPU."""

import sys

from worker.illegal_instruction import IllegalInstruction


def main() -> int:
    illegal = IllegalInstruction("probe")
    illegal.install()
    from worker.backends import library

    illegal.name_features(library.is_built_with)
    sys.stdout.write(library.system_info() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
