from cli.tune.candidates import Candidate, all_candidates, neighbours
from cli.tune.decision import Limits
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
