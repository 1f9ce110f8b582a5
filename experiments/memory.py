"""What processes and a Redis hold now, in MB (10^6 bytes)."""

from pathlib import Path
from typing import Any

from redis import Redis

_MEASURES = ("Anonymous", "Rss", "Pss")


def process_mb(pid: int) -> dict[str, float] | None:
    """``anonymous`` is the process' own, and what a leak adds to; ``rss`` has mapped files beside it
    and ``pss`` its share of those, which changes when others map the same model. ``None`` if it is gone."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in text.splitlines()[1:])
    return {name.lower(): int(fields[name].split()[0]) * 1024 / 1e6 for name in _MEASURES}


def redis_used_mb(client: Redis) -> float:
    facts: Any = client.info("memory")
    return float(facts["used_memory"]) / 1e6
