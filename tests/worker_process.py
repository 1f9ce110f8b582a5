"""``python -m worker`` as a subprocess, to its end."""

import os
import subprocess
import sys


def run_worker(
    redis_url: str, *flags: str, **environment: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-m", "worker", *flags],
        env=os.environ | {"MINI_VLLM_REDIS_URL": redis_url} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
