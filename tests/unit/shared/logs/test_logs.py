import json
import subprocess
import sys

import pytest

BEGIN = (
    "import logging, threading; from shared.logs import *; configure_logging('p', 'info', 'json'); "
)


def said_by(code: str) -> list[dict[str, str]]:
    done = subprocess.run([sys.executable, "-c", BEGIN + code], capture_output=True, text=True)
    return [dict(json.loads(line)) for line in done.stderr.splitlines()]


def test_what_nobody_catches_is_a_line() -> None:
    (line,) = said_by("{}['my secret']")
    assert (line["level"], line["process"]) == ("critical", "p")
    assert line["traceback"].endswith("\nKeyError")
    (line,) = said_by(
        "t = threading.Thread(target=lambda: 1 / 0, name='heart'); t.start(); t.join()"
    )
    assert line["message"] == "thread heart ended by what nobody caught"


def test_a_line_that_cannot_be_written_is_not_told_with_its_arguments() -> None:
    broken = (
        "logging.getLogger().handlers[0].stream = open('/dev/full', 'w', buffering=1); "
        "logging.getLogger('api').error('%s', 'my secret')"
    )
    done = subprocess.run([sys.executable, "-c", BEGIN + broken], capture_output=True, text=True)
    assert "my secret" not in done.stderr


def test_a_warning_of_python_is_a_line_of_the_same_format() -> None:
    (line,) = said_by("import warnings; warnings.warn('old')")
    assert line["logger"] == "py.warnings"
    assert "UserWarning: old" in line["message"]


def test_other_libraries_are_heard_from_a_warning_on() -> None:
    lines = said_by(
        "logging.getLogger('httpx').info('x'); logging.getLogger('uvicorn.error').warning('y'); "
        "logging.getLogger('uvicorn.access').error('GET /?secret'); logging.getLogger('api').info('z')"
    )
    assert [line["message"] for line in lines] == ["y", "z"]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_people_read_what_is_said_as_it_is(log_format: str) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import sys; from shared.logs import *; configure_logging('up', 'info', sys.argv[1]); "
            "say('no model', head='error: ')",
            log_format,
        ],
        capture_output=True,
        text=True,
    )
    if log_format == "text":
        assert done.stderr == "error: no model\n"
    else:
        assert json.loads(done.stderr)["message"] == "no model"
