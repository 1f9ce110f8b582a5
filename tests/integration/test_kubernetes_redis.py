"""deploy/kubernetes/redis: the files of the trial's Redis, run by a real Valkey."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

from shared.connection import connect
from shared.keys import queue_key, queue_name
from shared.redis_url import with_password
from tests.servers import Valkey

ROOT = Path(__file__).parents[2]
FILES = ROOT / "deploy/kubernetes/redis"
PASSWORDS = {"gateway": "a b/c&d\\1'\"$x ÷ 0123", "worker": "#>" * 10, "scaler": "s" * 16}
#: What KEDA's scaler for Redis does: a script that asks for the type first, since a list that is empty
#: is not there.
LENGTH = """
local length = {list = 'llen', none = 'llen', hash = 'hlen'}
return redis.call(length[redis.call('type', KEYS[1]).ok], KEYS[1])
"""
QUEUE = queue_key(queue_name("smollm2", "high"))


def render(folder: Path, passwords: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    (folder / "passwords").mkdir()
    for user, password in passwords.items():
        (folder / "passwords" / user).write_text(password)
    places = {
        "USERS": ROOT / "deploy/redis/users.acl",
        "SCALER": FILES / "scaler.acl",
        "PASSWORDS": folder / "passwords",
        "ACL": folder / "rendered.acl",
    }
    environment = {name: str(path) for name, path in places.items()} | {"PATH": "/usr/bin:/bin"}
    command = ["sh", str(FILES / "render-users.sh")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Valkey]:
    rendered = render(tmp_path, PASSWORDS)
    assert rendered.returncode == 0, rendered.stderr
    acl = tmp_path / "rendered.acl"
    acl.write_text(acl.read_text() + "user test on nopass ~* &* +@all\n")
    flags = ("--include", str(FILES / "redis.conf"), "--aclfile", str(acl))
    valkey = Valkey(*flags, user="test", password="x")
    yield valkey.start()
    valkey.remove()


def as_user(server: Valkey, user: str, password: str) -> Redis:
    return connect(with_password(f"unix://{user}@{server.socket}", password))


def test_jobs_are_kept_on_disk_and_never_evicted(server: Valkey) -> None:
    client = connect(server.url)
    wanted = {"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction"}
    found = {name: client.config_get(name)[name] for name in wanted}
    assert found == wanted
    assert client.config_get("maxmemory") == {"maxmemory": str(1 << 30)}
    client.close()


def test_each_user_has_the_password_of_the_secret_whatever_its_characters(server: Valkey) -> None:
    for user, password in PASSWORDS.items():
        client = as_user(server, user, password)
        assert client.ping()
        client.close()
        with pytest.raises(AuthenticationError):
            as_user(server, user, f"change-this-{user}-password").ping()
    with pytest.raises(AuthenticationError):
        connect(f"unix://{server.socket}").ping()


def test_the_other_users_stay_as_they_are(tmp_path: Path) -> None:
    render(tmp_path, PASSWORDS)
    first = (ROOT / "deploy/redis/users.acl").read_text().splitlines()[0]
    assert first.startswith("user default off ")
    assert (tmp_path / "rendered.acl").read_text().splitlines()[0] == first


def test_the_scaler_counts_what_waits(server: Valkey) -> None:
    gateway, scaler = (as_user(server, user, PASSWORDS[user]) for user in ("gateway", "scaler"))
    assert scaler.eval(LENGTH, 1, QUEUE) == 0
    gateway.rpush(QUEUE, "a", "b")
    assert scaler.eval(LENGTH, 1, QUEUE) == 2
    gateway.close()
    scaler.close()


@pytest.mark.parametrize(
    "command",
    [
        ("LPOP", QUEUE),
        ("LRANGE", QUEUE, "0", "-1"),
        ("LLEN", "rq:workers"),
        ("GET", "mini-vllm:secret"),
        ("EVAL", "return redis.call('LPOP', KEYS[1])", "1", QUEUE),
        ("EVAL", "return redis.call('RPUSH', KEYS[1], 'x')", "1", QUEUE),
        ("CONFIG", "GET", "dir"),
        ("FLUSHALL",),
    ],
)
def test_the_scaler_may_do_nothing_else(server: Valkey, command: tuple[str, ...]) -> None:
    scaler = as_user(server, "scaler", PASSWORDS["scaler"])
    with pytest.raises((NoPermissionError, ResponseError), match=r"(?i)permission"):
        scaler.execute_command(*command)  # type: ignore[no-untyped-call]
    scaler.close()


@pytest.mark.parametrize("password", ["", "fifteen letters"])
@pytest.mark.parametrize("user", sorted(PASSWORDS))
def test_a_short_password_is_refused_by_name(tmp_path: Path, user: str, password: str) -> None:
    refused = render(tmp_path, PASSWORDS | {user: password})
    assert refused.returncode == 1
    assert refused.stderr == (
        f"Secret mini-vllm: redis-{user}-password has fewer than 16 characters; "
        "make one: openssl rand -hex 24\n"
    )
