"""`mini-vllm cache`: against a gateway, and on a host directory that a store keeps."""

import json
import os
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from shared.cache_scopes import of_job, of_owner, public
from shared.connection import connect
from shared.rq_job import GenerateJob
from tests.gateway import PlayedWorker, RunningGateway
from worker.snapshots.store import Store

MODEL, OTHER = "a" * 32, "b" * 32
MIB = 2**20


def cache(
    *arguments: str, stdin: bytes = b"", settings: dict[str, str] | None = None
) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "cli", "cache", *arguments],
        input=stdin,
        capture_output=True,
        timeout=60,
        env=os.environ | (settings or {}),
    )
    output, errors = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in errors
    return done.returncode, output, errors


@pytest.fixture
def closed(valkey_url: str, flushed: Redis) -> Iterator[RunningGateway]:
    assert flushed.ping()
    gateway = RunningGateway(valkey_url, api_keys="alice", admin_keys="root")
    yield gateway.start()
    gateway.stop()


def test_a_file_is_warmed_and_waited_for(
    closed: RunningGateway, flushed: Redis, tmp_path: Path
) -> None:
    worker = PlayedWorker(flushed, "worker-0", "smollm2")
    worker.cached_tokens = 1
    (tmp_path / "system.txt").write_text("Be brief.\n")
    played: list[str] = []
    thread = threading.Thread(target=lambda: played.append(worker.play("x")))
    thread.start()
    source = str(tmp_path / "system.txt")
    code, output, errors = cache("warm", source, "--url", closed.url, "--key", "root", "--public")
    thread.join()
    assert (code, errors) == (0, "")
    assert output.startswith("2 of 3 tokens computed on worker-0, 1 were there; jobs of all keys")
    client = connect(closed.settings.redis_url)
    assert client.hget(f"mini-vllm:job:{played[0]}", "status") == b"completed"
    client.close()


def test_standard_input_is_sent_as_it_is_but_for_its_last_line_end(
    closed: RunningGateway, flushed: Redis
) -> None:
    worker = PlayedWorker(flushed, "worker-0", "smollm2")
    texts: list[str] = []

    def play() -> None:
        job_id = worker.take()
        job = GenerateJob.fetch(job_id, connection=connect(closed.settings.redis_url))
        texts.append(job.args[0]["request"]["prompt"])
        worker.start(job_id)
        worker.end(job_id, 0)

    thread = threading.Thread(target=play)
    thread.start()
    flags = ("--url", closed.url, "--raw")
    code, _, errors = cache(
        "warm", "-", *flags, stdin=b"a\n\n", settings={"MINI_VLLM_API_KEY": "alice"}
    )
    thread.join()
    assert (code, errors) == (0, "")
    assert texts == ["a\n"]


@pytest.mark.parametrize(
    ("arguments", "stdin", "words"),
    [
        (["-"], b"", "-: is empty"),
        (["-"], b"\xff", "-: is not UTF-8 text"),
        (["/none/there"], b"", "/none/there"),
        (["-"], b"x", "An API key is needed"),
        (["-", "--key", "alice", "--public"], b"x", "public: needs an admin key"),
        (["-", "--key", "alice", "--model", "none"], b"x", "none"),
    ],
)
def test_what_cannot_be_warmed_is_said_in_words(
    closed: RunningGateway, arguments: list[str], stdin: bytes, words: str
) -> None:
    code, output, errors = cache("warm", *arguments, "--url", closed.url, stdin=stdin)
    assert (code, output) == (1, "")
    assert words in errors


class Kept:
    """A host directory with snapshots in it."""

    def __init__(self, host_dir: Path) -> None:
        self.host_dir = host_dir
        self.stores = {
            print_: Store(
                host_dir / "snapshots", fingerprint=print_, max_bytes=64 * MIB, ttl_s=3600
            )
            for print_ in (MODEL, OTHER)
        }

    def put(self, scope: str, first: int, *, model: str = MODEL, unused_s: float = 0) -> None:
        folder = self.host_dir / "snapshots"
        before = set(folder.iterdir())
        tokens = array("i", range(first, first + 32))
        state = memoryview(bytes(MIB))
        assert self.stores[model].put(scope, tokens, state, first_position=0)
        (new,) = {path for path in folder.iterdir() if path.suffix == ".kv"} - before
        at_s = time.time() - unused_s
        os.utime(new, (at_s, at_s))

    def run(self, *arguments: str, **settings: str) -> tuple[int, str, str]:
        return cache(*arguments, settings={"MINI_VLLM_HOST_DIR": str(self.host_dir)} | settings)

    @property
    def kinds(self) -> list[str]:
        code, output, _ = self.run("list", "--json")
        assert code == 0
        return [row["kind"] for row in json.loads(output)["snapshots"]]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    found = Kept(tmp_path / "host")
    found.put(of_job("j"), 400, unused_s=4000)
    found.put(of_owner("alice", "key"), 200, unused_s=2000)
    found.put(public(), 100, model=OTHER, unused_s=1000)
    found.put(of_owner("", "key"), 300)
    return found


def test_what_is_kept_is_listed_with_whose_it_is_the_latest_first(kept: Kept) -> None:
    code, output, errors = kept.run("list", MINI_VLLM_CACHE_MAX_BYTES="9000000")
    assert (code, errors) == (0, "")
    lines = [line.split() for line in output.splitlines()]
    assert lines[0] == ["model", "kind", "of", "tokens", "MB", "last", "used"]
    assert [line[:2] for line in lines[1:5]] == [
        ["aaaaaaaa", "all"],
        ["bbbbbbbb", "public"],
        ["aaaaaaaa", "key"],
        ["aaaaaaaa", "job"],
    ]
    assert lines[3][2] == of_owner("alice", "key").removeprefix("key:")[:8]
    assert lines[2][2:] == ["32", "1.1", "16", "m", "ago"]
    assert "alice" not in output
    assert output.splitlines()[-1].startswith("4 snapshots, 4.2 of at most 9.0 MB, in ")


def test_programs_get_numbers(kept: Kept) -> None:
    code, output, _ = kept.run("list", "--json", MINI_VLLM_CACHE_MAX_BYTES="9000000")
    found = json.loads(output)
    assert code == 0
    assert found["max_bytes"] == 9_000_000
    assert found["total_bytes"] == sum(row["bytes"] for row in found["snapshots"]) > 4 * MIB
    first = found["snapshots"][0]
    assert (first["tokens"], first["fingerprint"], first["scope"]) == (32, MODEL, "all")


def test_a_host_without_snapshots_is_listed_and_cleared_and_nothing_is_made(tmp_path: Path) -> None:
    host_dir = tmp_path / "host"
    code, output, _ = cache("list", settings={"MINI_VLLM_HOST_DIR": str(host_dir)})
    assert code == 0
    assert output.startswith("0 snapshots")
    code, output, _ = cache("clear", settings={"MINI_VLLM_HOST_DIR": str(host_dir)})
    assert (code, output) == (0, f"0 snapshots removed from {host_dir}/snapshots, 0.0 MB\n")
    assert not host_dir.exists()


def test_a_file_that_is_no_snapshot_is_shown_as_unknown(kept: Kept) -> None:
    name = f"{'c' * 16}.{'d' * 12}.{'e' * 16}.77.kv"
    (kept.host_dir / "snapshots" / name).write_bytes(b"torn")
    assert kept.kinds[0] == "unknown"
    code, _, _ = kept.run("clear")
    assert code == 0
    assert kept.kinds == ["job"]


def test_clearing_leaves_what_jobs_go_on_from_unless_all_is_cleared(kept: Kept) -> None:
    code, output, _ = kept.run("clear")
    assert code == 0
    assert output.startswith("3 snapshots removed from ")
    assert kept.kinds == ["job"]
    assert kept.run("clear", "--all")[1].startswith("1 snapshots removed")
    assert kept.kinds == []


def test_clearing_can_leave_what_was_used_of_late(kept: Kept) -> None:
    assert kept.run("clear", "--older-than", "25m")[0] == 0
    assert kept.kinds == ["all", "public", "job"]
    assert kept.run("clear", "--all", "--older-than", "10m")[0] == 0
    assert kept.kinds == ["all"]


def test_a_time_that_is_none_is_refused(kept: Kept) -> None:
    code, _, errors = kept.run("clear", "--older-than", "soon")
    assert code == 2
    assert "--older-than" in errors
    assert "90s, 30m, 2h or 1d" in " ".join(errors.split())
    assert len(kept.kinds) == 4


def test_a_store_goes_on_beside_a_clearing(kept: Kept) -> None:
    store, tokens = kept.stores[MODEL], range(300, 332)
    (match,) = store.match(tokens, ["all"])
    state = store.open(match.entry)
    assert state is not None
    with state:
        assert kept.run("clear", "--all")[0] == 0
        assert bytes(state.buffer) == bytes(MIB), "who has one open keeps it"
    assert store.match(tokens, ["all"]) == []
    assert store.put("all", tokens, memoryview(bytes(MIB)), first_position=0)
    assert kept.kinds == ["all"]


@pytest.mark.parametrize("command", ["warm", "list", "clear"])
def test_help_teaches_each_command(command: str) -> None:
    code, output, _ = cache(command, "--help")
    assert code == 0
    assert "Usage:" in output
    assert len(output.splitlines()) > 8
