"""What the service costs: tokens per second through HTTP over those of the same engine alone.

Both sides run the same jobs on the same cores, in turn, several times: a pool of engines in bare
processes (no Redis, no HTTP), then `mini-vllm up` with 16 clients that follow their streams. The
last line of the output is JSON.

    python -m experiments.service_overhead --clients 16 --requests 2 --rounds 3
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from experiments.prompts import make_prompt
from experiments.service import running
from shared.cores import usable_cores
from shared.models import resolve_model
from shared.protocol import EndEvent, GenerateRequest, JobArgs, TokenEvent
from shared.settings import load_settings
from worker.engine import Engine
from worker.leases import pin
from worker.pace import Pace
from worker.sequence import JobTimes

CONTEXT_TOKENS = 1024


def make_request(number: int, output_tokens: int) -> dict[str, object]:
    """A prompt of some 64 tokens that no other job shares."""
    return {
        "prompt": make_prompt(number),
        "max_tokens": output_tokens,
        "ignore_eos": True,
        "seed": number,
    }


def run_engine(core: int, model: str, slots: int) -> None:
    """A bare engine: reads its jobs as one JSON line, says how many tokens came in how many s."""
    pin([core])
    from worker.backends.llama import LlamaBackend

    settings = load_settings()
    path = resolve_model(model, settings.model_dir).path
    backend = LlamaBackend(path, slots=slots, threads=1, context_tokens=CONTEXT_TOKENS)
    engine = Engine(
        backend,
        worker="bare",
        chunk_tokens=settings.prefill_chunk_tokens,
        pace=Pace(settings.prefill_stall_ms / 1000),
    )
    print("ready", flush=True)
    for line in sys.stdin:
        waiting = [
            JobArgs(request=GenerateRequest(**job), seed=job["seed"]) for job in json.loads(line)
        ]
        num_tokens, begin_s = 0, time.monotonic()
        while waiting or engine.num_active:
            while waiting and engine.num_free_slots:
                times = JobTimes(queued_s=0, before_attempt_s=0, began_s=time.monotonic())
                engine.admit(str(len(waiting)), 1, waiting.pop(0), times)
            for _, event in engine.step():
                num_tokens += len(event.tokens) if isinstance(event, TokenEvent) else 0
                assert not isinstance(event, EndEvent) or event.error is None, event
        print(json.dumps([num_tokens, time.monotonic() - begin_s]), flush=True)


class BareEngines:
    def __init__(self, cores: list[int], model: str, slots: int) -> None:
        self._children = [
            subprocess.Popen(
                [sys.executable, "-m", __spec__.name, "--engine-on", str(core)]
                + ["--model", model, "--slots", str(slots)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for core in cores
        ]
        for child in self._children:
            assert child.stdout and child.stdout.readline() == "ready\n"

    def measure(self, jobs: list[dict[str, object]]) -> float:
        """Tokens per second of all engines together."""
        begin_s = time.monotonic()
        for i, child in enumerate(self._children):
            assert child.stdin
            child.stdin.write(json.dumps(jobs[i :: len(self._children)]) + "\n")
            child.stdin.flush()
        lines = [child.stdout.readline() for child in self._children if child.stdout]
        return float(sum(json.loads(line)[0] for line in lines) / (time.monotonic() - begin_s))

    def stop(self) -> None:
        for child in self._children:
            if child.stdin:
                child.stdin.close()
            child.wait()


async def _exchange(url: str, request: bytes, until: bytes) -> bytes:
    """The cheapest client there is, so that it takes little from the cores that are measured."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(request)
    received = bytearray()
    while until not in received:
        block = await reader.read(65536)
        assert block, f"the connection closed early: {bytes(received[-300:])!r}"
        received += block
    writer.close()
    return bytes(received)


async def _run_client(url: str, jobs: list[dict[str, object]]) -> int:
    host = urlsplit(url).netloc
    num_tokens = 0
    for job in jobs:
        body = json.dumps(job).encode()
        head = f"POST /generate HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
        answer = await _exchange(url, head.encode() + body, b'"job_id"')
        job_id = answer.split(b'"job_id":"')[1].split(b'"')[0].decode()
        head = f"GET /jobs/{job_id}/stream HTTP/1.1\r\nHost: {host}\r\n\r\n"
        stream = await _exchange(url, head.encode(), b".end")
        num_tokens += int(stream.rsplit(b".end", 1)[0].rsplit(b"id: ", 1)[1])
    return num_tokens


async def measure_service(url: str, jobs: list[dict[str, object]], clients: int) -> float:
    begin_s = time.monotonic()
    counts = await asyncio.gather(*(_run_client(url, jobs[i::clients]) for i in range(clients)))
    return sum(counts) / (time.monotonic() - begin_s)


def _measure_rounds(
    bare: BareEngines, url: str, jobs: list[dict[str, object]], options: argparse.Namespace
) -> list[tuple[float, float]]:
    """Tokens per second of the engines alone and through the service, in turn."""
    # Both sides warm up: caches, page tables, imports.
    bare.measure(jobs[: options.clients])
    asyncio.run(measure_service(url, jobs[: options.clients], options.clients))
    rows = []
    for number in range(options.rounds):
        alone = bare.measure(jobs)
        through = asyncio.run(measure_service(url, jobs, options.clients))
        rows.append((alone, through))
        print(
            f"round {number + 1}: engine alone {alone:.1f} tokens/s, "
            f"through the service {through:.1f}, ratio {through / alone:.3f}",
            flush=True,
        )
    return rows


def measure(options: argparse.Namespace) -> dict[str, object]:
    cores = list(usable_cores().cores)
    jobs = [
        make_request(i, options.output_tokens) for i in range(options.clients * options.requests)
    ]
    bare = BareEngines(cores, options.model, options.slots)
    try:
        with running(
            workers=len(cores),
            model=options.model,
            context_tokens=CONTEXT_TOKENS,
            slots=options.slots,
            log_level="warning",
        ) as service:
            rows = _measure_rounds(bare, service.url, jobs, options)
    finally:
        bare.stop()
    return {
        "engine_tokens_per_s": round(statistics.median(a for a, _ in rows), 1),
        "service_tokens_per_s": round(statistics.median(b for _, b in rows), 1),
        "ratio": round(statistics.median(b / a for a, b in rows), 3),
        "ratios": [round(b / a, 3) for a, b in rows],
        "clients": options.clients,
        "jobs": len(jobs),
        "output_tokens": options.output_tokens,
        "workers": len(cores),
        "slots": options.slots,
        "model": Path(options.model).name,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=2, help="per client and round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output-tokens", type=int, default=64)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--engine-on", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine_on is not None:
        run_engine(options.engine_on, options.model, options.slots)
    else:
        print(json.dumps(measure(options)))


if __name__ == "__main__":
    main()
