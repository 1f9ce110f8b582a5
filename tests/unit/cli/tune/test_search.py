from cli.tune.candidates import Candidate, all_candidates, neighbours
from cli.tune.decision import Limits, decide
from cli.tune.report import expectation
from cli.tune.search import Search, Trial
from tests.unit.cli.tune.recorded import made, recorded

DEFAULT = Candidate("as-is", 2, 1, 8)
SINGLE = Candidate("as-is", 1, 2, 16)
BF16 = Candidate("bf16", 2, 1, 8)
FORMATS = ["as-is", "bf16", "f16"]
ALL = all_candidates(FORMATS, 2, 16)


def search(budget_s: float = 1000.0, **fields: object) -> Search:
    options: dict[str, object] = {
        "candidates": ALL,
        "default": DEFAULT,
        "single": SINGLE,
        "limits": Limits(),
        "budget_s": budget_s,
        "neighbours": lambda best: neighbours(best, 16),
    }
    return Search(**options | fields)  # type: ignore[arg-type]


def play(
    it: Search, speeds: dict[str, float], *, short_s: float = 3.0, full_s: float = 6.0
) -> list[Trial]:
    """On a machine where a format alone decides how fast it goes; what was tried, in order."""
    left_s, tried = it.budget_s, []
    while trial := it.next(left_s):
        tried.append(trial)
        took_s = short_s if trial.is_short else full_s
        left_s -= took_s
        speed = speeds[trial.candidate.weight_format] * (0.9 if trial.candidate.threads > 1 else 1)
        it.note(made(trial.candidate, speed, is_short=trial.is_short, took_s=took_s))
        assert len(tried) < 100
    return tried


def test_all_are_looked_at_and_only_those_that_can_win_are_tried_in_full() -> None:
    it = search()
    tried = play(it, {"as-is": 100, "bf16": 300, "f16": 130})
    assert {t.candidate for t in tried if t.is_short} >= {*ALL} - {Candidate("as-is", 1, 2, 16)}
    full = {t.candidate for t in tried if not t.is_short}
    assert BF16 in full
    assert Candidate("f16", 2, 1, 8) not in full
    assert it.best() == BF16


def test_what_the_gain_is_told_against_is_tried_in_full() -> None:
    tried = play(search(), {"as-is": 50, "bf16": 300, "f16": 150})
    assert {DEFAULT, SINGLE} <= {t.candidate for t in tried if not t.is_short}


def test_a_format_that_cannot_win_is_not_looked_at_in_other_layouts() -> None:
    tried = play(search(), {"as-is": 200, "bf16": 300, "f16": 50})
    assert Candidate("f16", 2, 1, 8) in {t.candidate for t in tried}
    assert Candidate("f16", 1, 2, 16) not in {t.candidate for t in tried}


def test_the_best_and_the_default_are_repeated_in_turn() -> None:
    tried = play(search(), {"as-is": 100, "bf16": 300, "f16": 150})
    again = [t.candidate for t in tried if t.stage == "again"]
    assert again.count(BF16) == again.count(DEFAULT) == 2
    turns = [c for c in again if c in (BF16, DEFAULT)]
    assert turns[0] != turns[1]


def test_neighbours_of_the_best_are_tried() -> None:
    tried = play(search(), {"as-is": 100, "bf16": 300, "f16": 150})
    around = {t.candidate for t in tried if t.stage == "around the best"}
    assert around == set(neighbours(BF16, 16))


def test_no_trial_begins_that_would_outlast_the_budget() -> None:
    it = search(budget_s=30.0)
    tried = play(it, {"as-is": 100, "bf16": 300, "f16": 150})
    assert sum(3.0 if t.is_short else 6.0 for t in tried) <= 30.0
    assert it.is_out_of_time
    assert any(not t.is_short for t in tried)


def test_a_candidate_that_failed_is_not_tried_again() -> None:
    it = search()
    first = it.next(1000.0)
    assert first is not None
    it.fail(first.candidate, "it crashed")
    tried = play(it, {"as-is": 100, "bf16": 300, "f16": 150})
    assert first.candidate not in {t.candidate for t in tried}


def test_noise_asks_for_more_repeats() -> None:
    def num_again(spread: float) -> int:
        it, count, left_s = search(), 0, 1000.0
        while trial := it.next(left_s):
            count += trial.stage == "again"
            factor = 1 + spread * (len(it.measures.get(trial.candidate, ())) % 2)
            it.note(made(trial.candidate, 100 * factor, is_short=trial.is_short))
        return count

    assert num_again(0.5) > num_again(0.01)


def test_a_quick_search_only_looks() -> None:
    tried = play(search(budget_s=9.0, is_quick=True), {"as-is": 100, "bf16": 300, "f16": 150})
    assert tried
    assert all(t.is_short for t in tried)
    assert len(tried) <= 3


def test_one_lucky_look_does_not_keep_the_others_from_their_full_trial() -> None:
    """Recorded: BF16 looked twice as fast in one process as it was."""
    looks = {m.candidate: m for ms in recorded().values() for m in ms if m.is_short}
    it = search()
    tried: list[Trial] = []
    while (trial := it.next(1000.0)) and len(tried) < 20:
        tried.append(trial)
        if trial.is_short and trial.candidate in looks:
            it.note(looks[trial.candidate])
        else:
            it.fail(trial.candidate, "is not played")
    assert BF16 in {t.candidate for t in tried if not t.is_short}


def played_seconds(it: Search, making_s: float, *, trial_s: float = 3.0) -> tuple[float, set[str]]:
    """Of a run in which a file takes so long to make, and a trial so long; the formats that were tried."""
    spent_s, there = 0.0, {"as-is"}
    it.making_s = lambda name: 0.0 if name in there else making_s
    while trial := it.next(it.budget_s - spent_s):
        spent_s += it.making_s(trial.candidate.weight_format) + trial_s
        there.add(trial.candidate.weight_format)
        speed = {"as-is": 100, "bf16": 300, "f16": 150}[trial.candidate.weight_format]
        it.note(made(trial.candidate, speed, is_short=trial.is_short, took_s=trial_s))
    return spent_s, there


def test_files_that_are_to_be_made_are_within_the_budget() -> None:
    spent_s, tried = played_seconds(search(budget_s=60.0), making_s=10.0)
    assert spent_s <= 60
    assert tried == set(FORMATS)
    it = search(budget_s=60.0)
    spent_s, tried = played_seconds(it, making_s=58.0)
    assert (spent_s <= 60, tried, it.is_out_of_time) == (True, {"as-is"}, True)


def test_files_that_are_to_be_made_are_in_the_time_that_is_told() -> None:
    alone = search().planned_s
    assert alone > len(ALL)
    it = search(making_s=lambda name: {"bf16": 20.0, "f16": 30.0}.get(name, 0.0))
    assert it.planned_making_s == 50
    assert it.planned_s == alone + 50
    assert expectation(search(budget_s=1000.0)).endswith("and the budget is 1000 s")
    words = expectation(search(budget_s=60.0, making_s=it.making_s))
    assert "bf16, f16 to be made first, in about 50 s" in words
    assert words.endswith("the budget is 60 s: what has no time is left out")


def play_checked(it: Search, speeds: dict[str, float], invariant: set[str]) -> None:
    """As a session: a candidate is checked in its first look, unless another of its kind was."""
    while trial := it.next(it.budget_s):
        candidate = trial.candidate
        known = candidate.weight_format in invariant
        speed = speeds[candidate.weight_format] * (0.9 if candidate.threads > 1 else 1)
        it.note(made(candidate, speed, is_short=trial.is_short, invariant=known))


def test_a_deterministic_search_gives_its_full_trials_to_what_may_be_chosen() -> None:
    """The three fastest depend on the batch: they once took all full trials, and the default won."""
    speeds = {"as-is": 100.0, "q4_k_m": 400.0, "iq4_nl": 390.0, "q6_k": 380.0, "bf16": 300.0}
    limits = Limits(deterministic=True)
    it = search(candidates=all_candidates(speeds, 2, 16), limits=limits)
    play_checked(it, speeds, {"as-is", "bf16"})
    full = {m.candidate.weight_format for ms in it.measures.values() for m in ms if not m.is_short}
    assert full == {"as-is", "bf16"}
    decision = decide(it.measures, limits, default=DEFAULT, single=SINGLE)
    assert decision.chosen is not None
    assert decision.chosen.measure.candidate == BF16
    assert decision.chosen.repeats > 1
    looked_at = {c.weight_format: 0 for c in it.measures}
    for candidate in it.measures:
        looked_at[candidate.weight_format] += 1
    assert looked_at["q4_k_m"] == 2, "with one thread and with two: neither tells of the other"
