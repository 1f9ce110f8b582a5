"""What `experiments.serving` can be asked, and what it refuses."""

import argparse
import os
import random

from experiments.serving_client import Server
from experiments.serving_workloads import WORKLOADS


def parse_options(description: str, arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.serving",
        description=description,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    defaults = {w.name: (w.clients, w.requests) for w in WORKLOADS.values()}
    parser.add_argument("--url", type=parse_server, action="append", required=True)
    parser.add_argument(
        "--workload",
        action="append",
        choices=list(WORKLOADS),
        help="may be repeated; all unless given:\n"
        + "\n".join(f"{w.name}: {w.title}" for w in WORKLOADS.values()),
    )
    parser.add_argument("--clients", type=at_least_one, help="of each workload (streams of `long`)")
    parser.add_argument(
        "--requests",
        type=at_least_one,
        help="per client: prompts, turns of a chat, or prompts that arrive;\n"
        f"(clients, requests) unless given: {defaults}",
    )
    parser.add_argument("--output-tokens", type=at_least_one, default=64, help="not of `long`")
    parser.add_argument("--rounds", type=at_least_one, default=3)
    parser.add_argument("--quiet-s", type=float, default=5, help="of `long`, before the prompt")
    parser.add_argument("--seed", type=int, help="drawn unless given")
    parser.add_argument("--model", default="default", help="as the servers call it")
    parser.add_argument("--api-key", default=os.environ.get("MINI_VLLM_API_KEY"))
    options = parser.parse_args(arguments)
    for what in ("name", "url"):
        if len({getattr(server, what) for server in options.url}) < len(options.url):
            parser.error(f"--url: two servers have one {what}; a second one would be warm")
    if not 0 <= options.quiet_s <= 30:
        parser.error(f"--quiet-s: must be 0 to 30 (got {options.quiet_s})")
    options.workload = list(dict.fromkeys(options.workload or WORKLOADS))
    if options.seed is None:
        options.seed = random.randrange(2**32)
    return options


def parse_server(text: str) -> Server:
    name, _, url = text.partition("=")
    url = url.rstrip("/").removesuffix("/v1")
    if not name or not url.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"must be NAME=http://HOST:PORT (got {text!r})")
    return Server(name, url)


def at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number from 1 on (got {text!r})")
    return int(text)
