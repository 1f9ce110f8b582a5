"""What this process may use of the machine: cores (affinity mask, cgroup CPU quota) and memory.

Everything is read below a root directory, so that tests can make up a machine. Nothing here pins or
reserves anything.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/")
#: cgroup v1 says "no limit" with a number near 2**63.
_UNLIMITED_BYTES = 1 << 60


@dataclass(frozen=True)
class UsableCores:
    #: As many as affinity and quota allow, physical cores first, SMT siblings last.
    cores: tuple[int, ...]
    #: All cores of the affinity mask, in the same order: several containers with a quota each share
    #: them, so whoever takes a core picks from these.
    candidates: tuple[int, ...]
    #: Cores of CPU time per second that the cgroup allows, ``None`` without a limit.
    quota: float | None
    #: Of each candidate: its physical core, named by the first of its siblings.
    physical: Mapping[int, int]
    #: Of each candidate: its NUMA node; 0 for all where the machine does not say.
    nodes: Mapping[int, int]

    @property
    def affinity(self) -> int:
        return len(self.candidates)


def usable_cores(root: Path = _ROOT, affinity: Iterable[int] | None = None) -> UsableCores:
    mask = set(os.sched_getaffinity(0) if affinity is None else affinity)
    siblings = {core: _siblings(root, core) for core in mask}
    ordered = order_physical_first(mask, siblings)
    quota = cpu_quota(root)
    count = len(ordered) if quota is None else max(1, min(len(ordered), math.floor(quota)))
    nodes = _nodes(root)
    return UsableCores(
        cores=ordered[:count],
        candidates=ordered,
        quota=quota,
        physical={core: min(siblings[core]) for core in ordered},
        nodes={core: nodes.get(core, 0) for core in ordered},
    )


def parse_cpu_list(text: str) -> tuple[int, ...]:
    """``0-2,8`` -> (0, 1, 2, 8): the format of the kernel's ``*_list`` files."""
    cores: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cores.extend(range(int(first), int(last or first) + 1))
    return tuple(cores)


def order_physical_first(
    cores: Iterable[int], siblings: Mapping[int, tuple[int, ...]]
) -> tuple[int, ...]:
    """First one core of each physical core, then the second ones, and so on."""
    mask = sorted(set(cores))

    def rank(core: int) -> int:
        return sum(other in mask for other in siblings.get(core, ()) if other < core)

    return tuple(sorted(mask, key=lambda core: (rank(core), core)))


def cpu_quota(root: Path = _ROOT) -> float | None:
    """The tightest limit of this process's cgroup and of those above it."""
    quotas = [_quota_of(folder) for folder in _cgroup_folders(root, "cpu")]
    return min((quota for quota in quotas if quota is not None), default=None)


def num_periods(root: Path = _ROOT) -> tuple[int, int] | None:
    """How often the quota has stopped this cgroup so far, of how many periods; ``None`` where nobody
    counts it."""
    for folder in _cgroup_folders(root, "cpu"):
        facts = dict(line.split() for line in _read(folder / "cpu.stat").splitlines())
        if "nr_throttled" in facts:
            return int(facts["nr_throttled"]), int(facts.get("nr_periods", 0))
    return None


@dataclass(frozen=True, slots=True)
class MemoryRoom:
    """What one limit leaves. ``is_container``: it is a cgroup's, else the machine's."""

    free_bytes: int
    is_container: bool


def memory_rooms(
    root: Path = _ROOT, *, counts_active_files: bool = False
) -> tuple[MemoryRoom, ...]:
    """Of the machine, and of each cgroup that has a limit; without swap. File pages that the kernel
    could drop count as free; those that were read again of late do if ``counts_active_files``."""
    rooms = []
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            rooms.append(MemoryRoom(int(line.split()[1]) * 1024, is_container=False))
    for folder in _cgroup_folders(root, "memory"):
        left = _memory_left_of(folder, counts_active_files)
        if left is not None:
            rooms.append(MemoryRoom(left, is_container=True))
    return tuple(rooms)


def memory_available_bytes(root: Path = _ROOT) -> int:
    """What can still be allocated without swapping: of the machine, and within each cgroup limit."""
    return min((room.free_bytes for room in memory_rooms(root)), default=0)


def parse_cpu_max(text: str) -> float | None:
    """cgroup v2 ``cpu.max``: ``max 100000`` or ``150000 100000``."""
    quota, _, period = text.strip().partition(" ")
    return None if quota in ("max", "") else int(quota) / int(period or 100_000)


def _quota_of(folder: Path) -> float | None:
    quota_us = _read(folder / "cpu.cfs_quota_us").strip()
    if quota_us and int(quota_us) > 0:
        return int(quota_us) / int(_read(folder / "cpu.cfs_period_us").strip() or 100_000)
    return parse_cpu_max(_read(folder / "cpu.max"))


def _memory_left_of(folder: Path, counts_active_files: bool) -> int | None:
    for limit_file, usage_file, prefix in (
        ("memory.max", "memory.current", ""),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    ):
        limit = _read(folder / limit_file).strip()
        if not limit.isdigit() or int(limit) >= _UNLIMITED_BYTES:
            continue
        used = int(_read(folder / usage_file).strip() or 0)
        stat = dict(line.split()[:2] for line in _read(folder / "memory.stat").splitlines())
        fields = ["inactive_file", *(["active_file"] if counts_active_files else [])]
        return max(1, int(limit) - used + sum(int(stat.get(prefix + f, 0)) for f in fields))
    return None


def _cgroup_folders(root: Path, controller: str) -> Iterator[Path]:
    """The folders that limit this process, innermost first. In a container the path in
    ``/proc/self/cgroup`` may be the host's, which cannot be seen; then only the mount itself is left."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mounts = ["", "unified"]
        elif controller in controllers.split(","):
            mounts = [controller, controllers]
        else:
            continue
        for mount in dict.fromkeys(mounts):
            base = root / "sys/fs/cgroup" / mount
            folder = base / path.strip("/")
            while base != folder and base in folder.parents:
                yield folder
                folder = folder.parent
            yield base


def _siblings(root: Path, core: int) -> tuple[int, ...]:
    topology = root / f"sys/devices/system/cpu/cpu{core}/topology"
    names = ("core_cpus_list", "thread_siblings_list")
    return next((parse_cpu_list(t) for n in names if (t := _read(topology / n))), (core,))


def _nodes(root: Path) -> dict[int, int]:
    lists = (root / "sys/devices/system/node").glob("node[0-9]*/cpulist")
    numbered = [(int(path.parent.name.removeprefix("node")), path) for path in lists]
    return {core: node for node, path in numbered for core in parse_cpu_list(_read(path))}


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
