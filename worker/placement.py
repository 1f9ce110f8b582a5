"""Which of the free cores a worker takes. Pure."""

from collections import Counter
from collections.abc import Collection

from shared.cores import UsableCores


def choose_cores(free: Collection[int], count: int, machine: UsableCores) -> tuple[int, ...]:
    """``count`` of the free ones, of one NUMA node where some node has so many. A core whose
    physical core does nothing else yet comes before one that would share it."""
    if count > len(free):
        raise ValueError(f"{count} cores of {len(free)}")
    in_use = Counter(machine.physical[core] for core in machine.candidates if core not in free)
    left = _of_best_node([core for core in machine.candidates if core in free], count, machine)
    chosen: list[int] = []
    for _ in range(count):
        core = min(left, key=lambda core: in_use[machine.physical[core]])  # the first such
        left.remove(core)
        in_use[machine.physical[core]] += 1
        chosen.append(core)
    return tuple(chosen)


def _of_best_node(free: list[int], count: int, machine: UsableCores) -> list[int]:
    """The free cores of the node with room for ``count`` whose physical cores do least, so that
    workers spread over the memory controllers; all of them if no node has room."""
    in_use = {machine.physical[core] for core in machine.candidates if core not in free}

    def num_idle(cores: list[int]) -> int:
        return len({machine.physical[core] for core in cores} - in_use)

    by_node: dict[int, list[int]] = {}
    for core in free:
        by_node.setdefault(machine.nodes[core], []).append(core)
    roomy = [node for node, cores in by_node.items() if len(cores) >= count]
    best = min(roomy, key=lambda node: (-num_idle(by_node[node]), node), default=None)
    return free if best is None else by_node[best]
