"""What the serving benchmark can be asked."""

import pytest

from experiments.serving_client import Server
from experiments.serving_options import parse_options, parse_server

OURS = ["--url", "ours=http://127.0.0.1:1/v1/"]


def test_a_server_has_a_name_and_its_url_may_end_as_an_openai_client_wants_it() -> None:
    assert parse_server("ours=http://127.0.0.1:1/v1/") == Server("ours", "http://127.0.0.1:1")


def test_all_workloads_are_run_unless_some_are_named() -> None:
    assert parse_options("", OURS).workload == ["random", "shared", "chats", "long"]
    asked = ["--workload", "chats", "--workload", "chats"]
    assert parse_options("", OURS + asked).workload == ["chats"]


def test_a_seed_is_drawn_unless_it_is_given() -> None:
    drawn = {parse_options("", OURS).seed for _ in range(5)}
    assert len(drawn) > 1
    assert parse_options("", [*OURS, "--seed", "7"]).seed == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--url"),
        (["--url", "http://127.0.0.1:1"], "NAME=http"),
        (["--url", "a=ftp://x"], "NAME=http"),
        ([*OURS, "--url", "other=http://127.0.0.1:1"], "two servers have one url"),
        ([*OURS, "--url", "ours=http://127.0.0.1:2"], "two servers have one name"),
        ([*OURS, "--workload", "none"], "--workload"),
        ([*OURS, "--rounds", "0"], "from 1 on (got '0')"),
        ([*OURS, "--clients", "many"], "from 1 on (got 'many')"),
        ([*OURS, "--quiet-s", "31"], "0 to 30"),
        ([*OURS, "--quiet-s", "nan"], "0 to 30"),
    ],
)
def test_what_cannot_be_measured_is_refused_by_name(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        parse_options("", arguments)
    assert refused.value.code == 2
    assert message in capsys.readouterr().err
