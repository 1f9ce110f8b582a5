"""``python -m cli.tether SIGNAL PARENT_PID -- command...``: becomes a command that dies with its parent.

The kernel sends SIGNAL when the parent is gone, however it went. Standard library only: it is started
for every child.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    name, parent_pid, separator, *command = arguments
    if separator != "--" or not command:
        print("usage: python -m cli.tether SIGNAL PARENT_PID -- command...", file=sys.stderr)
        return 64
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.Signals[name].value, 0, 0, 0):
        print(f"tether: prctl: {os.strerror(ctypes.get_errno())}", file=sys.stderr)
        return 71
    # The parent may have died before the kernel was told.
    if os.getppid() != int(parent_pid):
        return 0
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"tether: {command[0]}: {error.strerror}", file=sys.stderr)
        return 78


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
