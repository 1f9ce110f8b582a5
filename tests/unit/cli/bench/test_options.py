"""What is refused before anything is sent."""

import pytest
from rich.console import Console

from cli.bench.answers import Answer, Seen
from cli.bench.measured import Measured
from cli.bench.options import Given, make_plan
from cli.bench.report import print_report
from shared.errors import BadRequest


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rate": "nan"}, "--rate: must be numbers from 0.001 to 100000"),
        ({"rate": "1e-300"}, "--rate: must be numbers from 0.001 to 100000"),
        (
            {"rate": "0.01", "duration": "10s"},
            "--duration: no request comes in 10 s at --rate 0.01",
        ),
        ({"concurrency": "0"}, "--concurrency: must be numbers from 1 to 4096"),
        ({"concurrency": "1,1"}, "given twice"),
        ({"concurrency": "-4"}, "--concurrency: must be numbers from 1 to 4096"),
        ({"burstiness": float("nan"), "rate": "1"}, "--burstiness: must be from 0.01"),
        ({"duration": "0s"}, "--duration: must be more than 0"),
        ({"turns": 2}, "--turns: the workload random has no use for it"),
    ],
)
def test_a_bad_value_is_named_with_its_limit(given: dict[str, object], words: str) -> None:
    with pytest.raises(BadRequest) as caught:
        make_plan(Given(url=["http://a"], compare=[], **given))  # type: ignore[arg-type]
    assert words in caught.value.message


def test_a_name_with_brackets_is_told_as_it_is() -> None:
    plan = make_plan(Given(url=["[/x]=http://a", "http://[fe80::1]:8000"], compare=[]))
    measured = Measured(plan)
    answer = Answer(0.0, came_s=[1.0], ended_s=2.0, output_tokens=2, has_usage=True)
    for server in plan.servers:
        measured.add(plan.points[0], server.name, 1, Seen(0.0, 2.0, [answer]))
    console = Console(width=140, record=True)
    print_report(console, measured)
    told = console.export_text()
    assert "[/x]" in told
    assert "[fe80::1]:8000" in told
