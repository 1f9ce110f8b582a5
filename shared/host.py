"""How processes of one host see that another one lives, without Redis: files that it keeps locked.

Standard library only, and little of it: a health check imports this every few seconds.
"""

import fcntl
import os

#: Below the host directory: one file per worker process, named by its incarnation. Its first line
#: is the ``host_identity`` of the worker, its mtime when the worker last gave a sign of life.
WORKERS_FOLDER = "workers"


def host_identity() -> str:
    """The same for all processes of a container and for no other container that shares the
    directory: hostnames may be alike (``network_mode: host``), and pids are."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return f"{os.uname().nodename} {namespace}".strip()


def is_held(fd: int) -> bool:
    """Whether a live process keeps this file locked. Those who ask do not disturb each other."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False
