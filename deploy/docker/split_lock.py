"""Splits the lock file: the package that is compiled, and the rest, which changes more often.

python split_lock.py requirements.lock NATIVE_OUT REST_OUT
"""

import re
import sys
from pathlib import Path

_NATIVE = re.compile(r"(?m)^llama-cpp-python==.*(?:\n[ \t].*)*\n?")


def main() -> None:
    lock, native, rest = map(Path, sys.argv[1:])
    text = lock.read_text()
    native.write_text("".join(_NATIVE.findall(text)))
    rest.write_text(_NATIVE.sub("", text))


if __name__ == "__main__":
    main()
