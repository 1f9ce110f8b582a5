"""What processes and a Redis hold now, in MB (10^6 bytes)."""

from pathlib import Path
from typing import Any

from redis import Redis


def process_mb(pid: int) -> dict[str, float] | None:
    """``rss`` and ``pss`` (its share of what it shares); ``None`` if it is gone."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in text.splitlines()[1:])
    return {name.lower(): int(fields[name].split()[0]) * 1024 / 1e6 for name in ("Rss", "Pss")}


def redis_used_mb(client: Redis) -> float:
    facts: Any = client.info("memory")
    return float(facts["used_memory"]) / 1e6
