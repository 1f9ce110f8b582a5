from pathlib import Path

import pytest

from shared.cores import (
    cpu_quota,
    memory_available_bytes,
    num_periods,
    order_physical_first,
    parse_cpu_list,
    parse_cpu_max,
    usable_cores,
)
from tests.machines import put, two_sockets

GIB = 1 << 30


def smt_machine(root: Path) -> Path:
    """Two physical cores; 2 and 3 are the siblings of 0 and 1."""
    topology = "sys/devices/system/cpu/cpu{}/topology/core_cpus_list"
    return put(root, {topology.format(core): f"{core % 2},{core % 2 + 2}\n" for core in range(4)})


@pytest.mark.parametrize(
    ("text", "cores"), [("0-2,8\n", (0, 1, 2, 8)), ("5", (5,)), ("", ()), ("0,2-3", (0, 2, 3))]
)
def test_cpu_lists_of_the_kernel_are_read(text: str, cores: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cores


@pytest.mark.parametrize(
    ("text", "quota"), [("max 100000\n", None), ("150000 100000\n", 1.5), ("", None)]
)
def test_cpu_max_is_read(text: str, quota: float | None) -> None:
    assert parse_cpu_max(text) == quota


def test_adjacent_siblings_come_last() -> None:
    siblings = {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)}
    assert order_physical_first([3, 2, 1, 0], siblings) == (0, 2, 1, 3)


def test_a_sibling_outside_the_mask_does_not_push_a_core_back() -> None:
    assert order_physical_first([1, 2], {1: (0, 1), 2: (2, 3)}) == (1, 2)


def test_without_limits_every_core_of_the_mask_is_usable_physical_first(tmp_path: Path) -> None:
    usable = usable_cores(smt_machine(tmp_path), affinity=[0, 2, 3])
    assert usable.cores == usable.candidates == (0, 3, 2)
    assert (usable.affinity, usable.quota) == (3, None)


def test_a_v2_quota_is_rounded_down_and_the_candidates_stay(tmp_path: Path) -> None:
    root = put(
        smt_machine(tmp_path),
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
            "sys/fs/cgroup/a/cpu.max": "290000 100000\n",
        },
    )
    usable = usable_cores(root, affinity=range(4))
    assert usable.cores == (0, 1)
    assert usable.candidates == (0, 1, 2, 3)
    assert usable.quota == 2.9


def test_less_than_one_core_of_quota_leaves_one_core(tmp_path: Path) -> None:
    cpu_max = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}
    assert usable_cores(put(tmp_path, cpu_max), affinity=[4, 5]).cores == (4,)


def test_a_v1_quota_is_found_below_its_controller(tmp_path: Path) -> None:
    root = put(
        tmp_path,
        {
            "proc/self/cgroup": "3:cpuset:/\n2:cpu,cpuacct:/docker/x\n0::/\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us": "300000\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.stat": "nr_periods 9\nnr_throttled 4\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        },
    )
    assert cpu_quota(root) == 3.0
    assert num_periods(root) == (4, 9)


def test_where_the_path_is_the_hosts_the_mount_itself_counts(tmp_path: Path) -> None:
    root = put(
        tmp_path,
        {
            "proc/self/cgroup": "2:cpu:/docker/unseen\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    )
    assert cpu_quota(root) == 1.5


def test_memory_is_the_machines_where_no_cgroup_limits_it(tmp_path: Path) -> None:
    root = put(
        tmp_path,
        {
            "proc/meminfo": f"MemTotal: 1 kB\nMemAvailable:   {3 * GIB // 1024} kB\n",
            "proc/self/cgroup": "4:memory:/x\n0::/\n",
            "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert memory_available_bytes(root) == 3 * GIB


@pytest.mark.parametrize(
    ("cgroup", "folder", "limit", "usage", "cache"),
    [
        ("0::/x", "x", "memory.max", "memory.current", "inactive_file"),
        (
            "4:memory:/x",
            "memory/x",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
            "total_inactive_file",
        ),
    ],
)
def test_memory_within_a_cgroup_counts_file_cache_as_free(
    tmp_path: Path, cgroup: str, folder: str, limit: str, usage: str, cache: str
) -> None:
    base = f"sys/fs/cgroup/{folder}"
    root = put(
        tmp_path,
        {
            "proc/meminfo": f"MemAvailable: {8 * GIB // 1024} kB\n",
            "proc/self/cgroup": cgroup + "\n",
            f"{base}/{limit}": f"{4 * GIB}\n",
            f"{base}/{usage}": f"{3 * GIB}\n",
            f"{base}/memory.stat": f"anon 1\n{cache} {GIB}\n",
        },
    )
    assert memory_available_bytes(root) == 2 * GIB


def test_each_core_has_its_physical_core_and_its_node(tmp_path: Path) -> None:
    usable = usable_cores(two_sockets(tmp_path), affinity=[1, 5, 9, 13])
    assert usable.physical == {1: 1, 9: 1, 5: 5, 13: 5}
    assert usable.nodes == {1: 0, 9: 0, 5: 1, 13: 1}


def test_a_machine_that_says_nothing_of_nodes_has_one(tmp_path: Path) -> None:
    usable = usable_cores(tmp_path, affinity=[3, 4])
    assert usable.nodes == {3: 0, 4: 0}
    assert usable.physical == {3: 3, 4: 4}


def test_this_machine_has_a_core_and_memory() -> None:
    usable = usable_cores()
    assert len(usable.cores) >= 1
    assert set(usable.cores) <= set(usable.candidates)
    assert memory_available_bytes() > 0
