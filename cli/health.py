"""`python -P -m cli.health gateway|worker`: the health check of a container.

Ends with 0, or with 1 and one line that says why. It runs every few seconds beside a pinned worker,
so it imports next to nothing: no settings, no Redis.
"""

import os
import sys
import time

from shared.host import WORKERS_FOLDER, host_identity, is_held

_TIMEOUT_S = 3.0
#: Beside the pause between two signs: a Redis that hangs holds the next one up for 10 s.
_SIGN_MARGIN_S = 14.0


def gateway_problem(port: int) -> str | None:
    """What is wrong with the gateway of this host, if anything."""
    import socket

    end_s = time.monotonic() + _TIMEOUT_S
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_S) as line:
            line.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            while b"\r\n" not in answer and time.monotonic() < end_s:
                line.settimeout(max(0.001, end_s - time.monotonic()))
                piece = line.recv(1024)
                if not piece:
                    break
                answer += piece
    except OSError as error:
        return f"the gateway at port {port} does not answer: {error}"
    status = answer.split(b"\r\n")[0].split(b" ")
    if status[0].startswith(b"HTTP/1.") and status[1:2] == [b"200"]:
        return None
    return f"the gateway at port {port} answers {answer[:60]!r}"


def worker_problem(host_dir: str, sign_s: float) -> str | None:
    """What is wrong with the workers of this host, if none of them gave a sign of life of late.
    ``sign_s``: how often they do."""
    folder = os.path.join(host_dir, WORKERS_FOLDER)
    limit_s = sign_s + _SIGN_MARGIN_S
    ages_s = []
    try:
        names = os.listdir(folder)
    except OSError as error:
        return f"no worker runs here: {folder}: {error.strerror}"
    for name in names:
        mtime_s = _sign_of_life(os.path.join(folder, name))
        if mtime_s is not None:
            # Both are this kernel's clock. One that was set back makes a sign seem to come: its
            # worker gives another one soon.
            ages_s.append(abs(time.time() - mtime_s))
    if not ages_s:
        return f"no worker of this host runs: none keeps its file in {folder} locked"
    if min(ages_s) > limit_s:
        return f"the worker has given no sign of life for {min(ages_s):.0f} s"
    return None


def _sign_of_life(path: str) -> float | None:
    """When the worker of this file last gave one, if it lives and is of this host."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # it has just ended, or is another user's
        return None
    try:
        is_ours = os.read(fd, 1024).partition(b"\n")[0].decode(errors="replace") == host_identity()
        return os.fstat(fd).st_mtime if is_ours and is_held(fd) else None
    finally:
        os.close(fd)


def _host_dir() -> str:
    """As in ``shared.settings``, which would be long to import; a test keeps the two in line."""
    root = "/dev/shm" if os.path.isdir("/dev/shm") else "/tmp"
    return os.environ.get("MINI_VLLM_HOST_DIR") or f"{root}/mini-vllm-{os.getuid()}"


def _number(name: str, default: str) -> float:
    text = os.environ.get(name) or default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 65_535:
        sys.exit(f"{name}={text!r} is not a number that it can be")
    return value


def main(arguments: list[str]) -> int:
    if arguments == ["gateway"]:
        problem = gateway_problem(int(_number("MINI_VLLM_PORT", "8000")))
    elif arguments == ["worker"]:
        problem = worker_problem(_host_dir(), _number("MINI_VLLM_HEARTBEAT_S", "1"))
    else:
        problem = "say what to look at: python -P -m cli.health gateway|worker"
    if problem:
        print(problem, file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
