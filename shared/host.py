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


def host_dir_id(host_dir: "os.PathLike[str]") -> str:
    """The same for all processes that have this directory, in containers too, and for no other one on
    any machine. Raises ``OSError``."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            machine = file.read().replace("-", "")[:12]
    except OSError:
        machine = os.uname().nodename
    place = os.stat(host_dir)
    return f"{machine}-{place.st_dev:x}-{place.st_ino:x}"


def is_held(fd: int) -> bool:
    """Whether a live process keeps this file locked. Those who ask do not disturb each other."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False
