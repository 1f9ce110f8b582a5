"""The measure of chaos: a crowd that met a fault is told, byte for byte, what it is told without one."""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from tests.acceptance.crowd import BODIES, Client, Crowd
from tests.acceptance.ledger import Ends, Ledger, text_of
from tests.service import Running

#: Tokens of the whole crowd, about two thirds of what it gets in the end.
LATEST_MOMENT = 500

_texts: list[str] = []


def undisturbed_texts(service: Running) -> list[str]:
    """Found once per process: they are the same on every service."""
    if not _texts:
        ledger = Ledger(service)
        with Crowd(service.url) as crowd:
            clients = crowd.wait_for_end()
        ledger.close(clients)
        assert [(c.end["status"], c.num_breaks) for c in clients] == [("completed", 0)] * len(
            BODIES
        )
        assert crowd.num_tokens > LATEST_MOMENT
        _texts.extend(client.text for client in clients)
    return _texts


class Audited(Crowd):
    """Once it is left, ``ends`` has the terminal event of every job that was accepted meanwhile."""

    ends: Ends

    @property
    def attempts(self) -> list[int]:
        """Of its clients' jobs."""
        return [self.ends[client.job_id].attempts for client in self.clients]


@contextmanager
def undisturbed_crowd(service: Running) -> Iterator[Audited]:
    """Starts it, and at the end of the block waits for its end and compares everything."""
    expected = undisturbed_texts(service)
    ledger = Ledger(service)
    with Audited(service.url) as crowd:
        yield crowd
        clients = crowd.wait_for_end()
    crowd.ends = ledger.close(clients)
    assert_told(service.url, clients, expected)


def assert_told(url: str, clients: list[Client], expected: list[str]) -> None:
    not_completed = [str(c) for c in clients if c.end["status"] != "completed"]
    assert not not_completed, f"did not complete: {not_completed}"
    for client, text in zip(clients, expected, strict=True):
        assert client.text == text, f"{client}: {client.text!r} instead of {text!r}"
        assert text_of(url, client.job_id) == text, f"{client}: kept as another text than streamed"


def wait_for_moment(
    crowd: Crowd, chance: Random, each: int = 0, latest: int = LATEST_MOMENT
) -> None:
    """A drawn one, while most of the work is still to be done; ``each`` client has so many tokens."""
    moment = chance.randint(0, latest)
    print(f"strikes at {moment} tokens")
    crowd.wait_for_tokens(moment, each)
