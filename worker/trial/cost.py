"""What this process takes of memory and of its cores, and how often others were in its way.

``/proc`` is Linux; where a file is not there the figure is 0.
"""

import os
import resource
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_STEAL_COLUMN = 8  #: of a line of /proc/stat: cpuN user nice system idle iowait irq softirq steal


@dataclass(frozen=True, slots=True)
class Cost:
    cpu_s: float
    delayed_s: float
    involuntary_switches: int
    stolen_s: float

    def since(self, before: "Cost") -> "Cost":
        return Cost(
            self.cpu_s - before.cpu_s,
            max(0.0, self.delayed_s - before.delayed_s),
            self.involuntary_switches - before.involuntary_switches,
            max(0.0, self.stolen_s - before.stolen_s),
        )


def cost_so_far(cores: Collection[int], proc: Path = _PROC) -> Cost:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return Cost(
        cpu_s=usage.ru_utime + usage.ru_stime,
        delayed_s=_delayed_s(proc),
        involuntary_switches=usage.ru_nivcsw,
        stolen_s=_stolen_s(proc, cores),
    )


def memory_bytes(proc: Path = _PROC) -> tuple[int, int]:
    """Resident, and resident with each shared page divided by who shares it."""
    fields = {}
    for line in _read(proc / "self/smaps_rollup").splitlines()[1:]:
        name, _, rest = line.partition(":")
        fields[name] = int(rest.split()[0]) * 1024
    return fields.get("Rss", 0), fields.get("Pss", 0)


def _delayed_s(proc: Path) -> float:
    """Of all threads: ready to run, and not running. schedstat: on a core, waiting (ns), slices."""
    total_ns = 0
    for path in proc.glob("self/task/*/schedstat"):
        fields = _read(path).split()
        total_ns += int(fields[1]) if len(fields) == 3 else 0
    return total_ns / 1e9


def _stolen_s(proc: Path, cores: Collection[int]) -> float:
    names = {f"cpu{core}" for core in cores}
    total = 0
    for line in _read(proc / "stat").splitlines():
        fields = line.split()
        if fields and fields[0] in names and len(fields) > _STEAL_COLUMN:
            total += int(fields[_STEAL_COLUMN])
    return total / os.sysconf("SC_CLK_TCK")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # a thread that has just ended, a kernel without it
        return ""
