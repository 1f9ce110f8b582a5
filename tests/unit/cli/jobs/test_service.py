"""Which job is meant by the beginning of its id."""

import httpx
import pytest

from cli.jobs.service import MIN_CANCEL_CHARS, choose, find_id
from cli.service import RequestFailed

A, B = "4b35" + "0" * 28, "4b36" + "0" * 28


def test_one_that_begins_so_is_the_one() -> None:
    assert choose("4b35", [B, A, A]) == A


def test_of_several_none_is_chosen_and_all_are_named() -> None:
    with pytest.raises(RequestFailed, match=f"2 jobs begin with 4b3: {A}, {B}; give more"):
        choose("4b3", [B, A])


def test_where_none_begins_so_that_is_said_with_what_to_do() -> None:
    with pytest.raises(RequestFailed, match=r"begins with ffff.*jobs list"):
        choose("ffff", [A, B])


@pytest.mark.parametrize("given", [A, A.upper(), f" {A}", f"chatcmpl-{A}", f"cmpl-{A}"])
def test_a_whole_id_is_not_looked_for(given: str) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise AssertionError("nothing is asked")

    client = httpx.Client(base_url="http://x", transport=httpx.MockTransport(refuse))
    assert find_id(client, given) == A


@pytest.mark.parametrize("given", ["", "4b3", "xyzw", "../jobs", "4b35" * 9])
def test_what_is_no_id_is_refused_before_anything_is_asked(given: str) -> None:
    with (
        httpx.Client(base_url="http://x") as client,
        pytest.raises(RequestFailed, match="no job id"),
    ):
        find_id(client, given)


def test_where_a_job_would_end_more_of_its_id_is_asked_for() -> None:
    with (
        httpx.Client(base_url="http://x") as client,
        pytest.raises(RequestFailed, match="the first 8 or more"),
    ):
        find_id(client, A[:7], MIN_CANCEL_CHARS)
