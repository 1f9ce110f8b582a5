import os
from argparse import ArgumentTypeError

import pytest

from worker.names import fitting_name, host_name


@pytest.mark.parametrize(
    ("nodename", "name"),
    [
        ("node-1.rack_2", "node-1.rack_2"),
        ("3f2a9c", "3f2a9c"),
        (".%s/ho st\n", "shost"),
        ("é", "worker"),
        ("(none)", "none"),
        ("a" * 80, "a" * 64),
    ],
)
def test_a_hosts_name_is_one_without_what_does_not_fit(
    monkeypatch: pytest.MonkeyPatch, nodename: str, name: str
) -> None:
    uname = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((uname[0], nodename, *uname[2:])))
    assert host_name() == name
    assert fitting_name(name) == name


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "a%s", "-a", "a\n", "a" * 81])
def test_a_given_name_that_does_not_fit_is_refused(name: str) -> None:
    with pytest.raises(ArgumentTypeError, match="a letter or a digit first"):
        fitting_name(name)
