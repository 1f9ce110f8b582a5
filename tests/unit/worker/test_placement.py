from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.cores import UsableCores, order_physical_first, usable_cores
from tests.machines import two_sockets
from worker.placement import choose_cores


@st.composite
def machines(draw: st.DrawFn) -> UsableCores:
    """Up to 3 nodes of up to 4 physical cores with up to 3 threads, numbered any way; some masked."""
    physical: dict[int, int] = {}
    nodes: dict[int, int] = {}
    shape = draw(st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=4), max_size=3))
    num_cores = sum(map(sum, shape))
    numbers = iter(draw(st.permutations(range(num_cores))))
    for node, cores in enumerate(shape):
        for num_threads in cores:
            siblings = [next(numbers) for _ in range(num_threads)]
            physical |= dict.fromkeys(siblings, min(siblings))
            nodes |= dict.fromkeys(siblings, node)
    mask = draw(st.sets(st.sampled_from(range(num_cores)))) if num_cores else set()
    groups = {c: tuple(o for o in physical if physical[o] == physical[c]) for c in physical}
    ordered = order_physical_first(mask, groups)
    return UsableCores(ordered, ordered, None, physical, nodes)


@st.composite
def questions(draw: st.DrawFn) -> tuple[UsableCores, set[int], int]:
    machine = draw(machines())
    free = {core for core in machine.candidates if draw(st.booleans())}
    return machine, free, draw(st.integers(0, len(free)))


@given(questions())
def test_it_takes_as_many_as_asked_once_each_from_the_free_ones(
    question: tuple[UsableCores, set[int], int],
) -> None:
    machine, free, count = question
    chosen = choose_cores(free, count, machine)
    assert len(set(chosen)) == len(chosen) == count
    assert set(chosen) <= free


@given(questions())
def test_one_node_is_enough_where_one_has_room(
    question: tuple[UsableCores, set[int], int],
) -> None:
    machine, free, count = question
    nodes = {machine.nodes[core] for core in choose_cores(free, count, machine)}
    has_room = max(Counter(machine.nodes[core] for core in free).values(), default=0) >= count
    assert len(nodes) <= 1 or not has_room


@given(questions())
def test_no_physical_core_is_shared_while_an_idle_one_is_in_reach(
    question: tuple[UsableCores, set[int], int],
) -> None:
    """In reach: of the nodes that it takes cores of anyway."""
    machine, free, count = question
    chosen = choose_cores(free, count, machine)
    load = Counter(machine.physical[c] for c in machine.candidates if c not in free)
    load.update(machine.physical[core] for core in chosen)
    nodes = {machine.nodes[core] for core in chosen}
    left = {machine.physical[c] for c in free if machine.nodes[c] in nodes}
    if any(load[machine.physical[core]] > 1 for core in chosen):
        assert all(load[core] > 0 for core in left)


@given(questions())
def test_the_answer_does_not_depend_on_the_order_of_the_free_cores(
    question: tuple[UsableCores, set[int], int],
) -> None:
    machine, free, count = question
    backwards = dict.fromkeys(sorted(free, reverse=True))
    assert choose_cores(backwards, count, machine) == choose_cores(free, count, machine)


def test_workers_spread_over_the_nodes_of_two_sockets(tmp_path: Path) -> None:
    machine = usable_cores(two_sockets(tmp_path), affinity=range(16))
    free = set(range(16))
    taken = []
    for count in (2, 2, 2, 2, 4, 3):
        taken.append(choose_cores(free, count, machine))
        free -= set(taken[-1])
    assert taken == [(0, 1), (4, 5), (2, 3), (6, 7), (8, 9, 10, 11), (12, 13, 14)]


def test_a_worker_that_needs_more_than_a_node_has_the_physical_cores_of_both(
    tmp_path: Path,
) -> None:
    machine = usable_cores(two_sockets(tmp_path), affinity=range(16))
    assert choose_cores(range(16), 9, machine) == (0, 1, 2, 3, 4, 5, 6, 7, 8)


def test_a_core_whose_sibling_works_for_another_comes_later(tmp_path: Path) -> None:
    machine = usable_cores(two_sockets(tmp_path), affinity=[0, 1, 8, 9])
    assert choose_cores({0, 1, 9}, 1, machine) == (1,)
    assert choose_cores({0, 1, 9}, 2, machine) == (1, 0)


def test_more_than_are_free_is_an_error_of_the_caller(tmp_path: Path) -> None:
    machine = usable_cores(two_sockets(tmp_path), affinity=[0, 1])
    with pytest.raises(ValueError, match="2 cores of 1"):
        choose_cores({0}, 2, machine)
