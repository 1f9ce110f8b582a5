"""Made-up machines: what the kernel would say of them below /sys, and what comes of it."""

from pathlib import Path

from shared.cores import UsableCores


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def two_sockets(root: Path) -> Path:
    """Two nodes of four physical cores: 0-3 and their siblings 8-11, 4-7 and 12-15."""
    siblings = {
        f"sys/devices/system/cpu/cpu{core}/topology/core_cpus_list": f"{core % 8},{core % 8 + 8}\n"
        for core in range(16)
    }
    nodes = {0: "0-3,8-11\n", 1: "4-7,12-15\n", 2: "\n"}  # the last one has memory only
    lists = {f"sys/devices/system/node/node{n}/cpulist": text for n, text in nodes.items()}
    return put(root, siblings | lists | {"sys/devices/system/node/online": "0-2\n"})


def plain_machine(num_cores: int, num_usable: int | None = None) -> UsableCores:
    """One node, no siblings; a quota where fewer cores are usable than there are."""
    cores = tuple(range(num_cores))
    return UsableCores(
        cores=cores[:num_usable],
        candidates=cores,
        quota=num_usable,
        physical={core: core for core in cores},
        nodes=dict.fromkeys(cores, 0),
    )
