"""The supervisor with real processes that are quick to start."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psutil
import pytest

from cli.child import Child
from cli.supervisor import Supervisor
from cli.watch import is_stopped, watch_for_stop
from shared.errors import SetupError
from shared.exit_codes import EXIT_CONFIG
from tests.servers import wait_for

READY = "import os, sys; os.write(int(sys.argv[1]), b'ready\\n');"
SLEEP = "import time; time.sleep(600)"


def make_child(
    script: str, on_death: Callable[[bool], None] | None = None, hurries: bool = False
) -> Child:
    return Child(
        "child",
        lambda ready_fd: [sys.executable, "-c", script, str(ready_fd)],
        os.environ,
        on_death=on_death,
        watches=[watch_for_stop(0.2)],
        hurries=hurries,
    )


def run_until(supervisor: Supervisor, condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 30
    supervisor.run_until(lambda: condition() or time.monotonic() > end_s)
    assert condition()


def pid_of(child: Child) -> int:
    assert child.process is not None
    return child.process.pid


def test_a_child_that_dies_is_reaped_told_and_started_again() -> None:
    deaths: list[bool] = []
    child = make_child(READY + SLEEP, deaths.append)
    supervisor = Supervisor([child])
    supervisor.start(child)
    run_until(supervisor, lambda: child.announced == ["ready"])
    first = pid_of(child)
    os.kill(first, signal.SIGKILL)
    run_until(supervisor, lambda: bool(deaths))
    run_until(supervisor, lambda: child.is_running and child.announced == ["ready"])
    assert pid_of(child) != first
    assert deaths == [True]
    supervisor.stop([[child]], drain_s=10)
    assert not child.is_running


def test_five_deaths_before_ready_end_it_with_the_last_words() -> None:
    child = make_child("import sys; sys.exit('no luck today')")
    supervisor = Supervisor([child])
    supervisor.start(child)
    with pytest.raises(SetupError, match=r"5 times before it was ready(?s:.*)no luck today"):
        supervisor.run_until(lambda: False)


def test_a_child_that_cannot_be_set_up_ends_it_at_once() -> None:
    script = f"import sys; print('bad setting', file=sys.stderr); sys.exit({EXIT_CONFIG})"
    child = make_child(script)
    supervisor = Supervisor([child])
    supervisor.start(child)
    with pytest.raises(SetupError, match="bad setting"):
        supervisor.run_until(lambda: False)


def test_what_does_not_end_in_time_is_killed() -> None:
    script = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + READY + SLEEP
    child = make_child(script)
    supervisor = Supervisor([child])
    supervisor.start(child)
    run_until(supervisor, lambda: child.announced == ["ready"])
    process = psutil.Process(pid_of(child))
    supervisor.stop([[child]], drain_s=0.2)
    assert not process.is_running()


def test_a_second_stop_request_does_not_wait() -> None:
    script = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + READY + SLEEP
    child = make_child(script)
    supervisor = Supervisor([child])
    supervisor.start(child)
    run_until(supervisor, lambda: child.announced == ["ready"])
    supervisor.num_stop_requests = 2
    supervisor.stop([[child]], drain_s=600)
    assert not child.is_running


def test_a_child_that_was_stopped_is_killed_and_started_again(
    capfd: pytest.CaptureFixture[str],
) -> None:
    deaths: list[bool] = []
    child = make_child(READY + SLEEP, deaths.append)
    supervisor = Supervisor([child])
    supervisor.start(child)
    run_until(supervisor, lambda: child.announced == ["ready"])
    first = pid_of(child)
    os.kill(first, signal.SIGSTOP)
    run_until(supervisor, lambda: bool(deaths))
    run_until(supervisor, lambda: child.is_running and child.announced == ["ready"])
    assert pid_of(child) != first
    assert deaths == [False], "the stop was an operator's doing"
    supervisor.stop([[child]], drain_s=10)
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("up:")]
    assert said == ["up: child was stopped by a signal for more than 0.2 s: it is killed"]


def test_a_stopped_child_does_not_hold_up_the_end() -> None:
    child = make_child(READY + SLEEP)
    supervisor = Supervisor([child])
    supervisor.start(child)
    run_until(supervisor, lambda: child.announced == ["ready"])
    os.kill(pid_of(child), signal.SIGSTOP)
    supervisor.stop([[child]], drain_s=600)
    assert not child.is_running


def test_a_process_under_a_debugger_does_not_count_as_stopped() -> None:
    # PTRACE_TRACEME: its SIGSTOP is then a stop for the tracer, which is this process.
    script = (
        "import ctypes, os, signal; ctypes.CDLL(None).ptrace(0, 0, 0, 0);"
        "os.kill(os.getpid(), signal.SIGSTOP)"
    )
    traced = subprocess.Popen([sys.executable, "-c", script])
    try:
        process = psutil.Process(traced.pid)
        wait_for(lambda: process.status() == psutil.STATUS_TRACING_STOP, "it is traced")
        assert not is_stopped(traced.pid)
    finally:
        traced.kill()
        traced.wait()


def test_what_hurries_is_told_twice_if_it_is_not_of_the_first_group() -> None:
    script = (
        "import signal, sys, time; told = [];"
        "signal.signal(signal.SIGTERM, lambda *_: told.append(1) if not told else sys.exit(0));"
    )
    child = make_child(script + READY + SLEEP, hurries=True)
    supervisor = Supervisor([child])
    supervisor.start(child)
    run_until(supervisor, lambda: child.announced == ["ready"])
    process = child.process
    assert process is not None
    supervisor.stop([[], [child]], drain_s=0)
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_way_to_be_told_to_stop_ends_the_loop(number: signal.Signals) -> None:
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    supervisor = Supervisor([])
    try:
        supervisor.install_signal_handlers()
        os.kill(os.getpid(), number)
        supervisor.run_until(lambda: False)
        assert supervisor.is_stopping
    finally:
        for n, handler in before.items():
            signal.signal(n, handler)
