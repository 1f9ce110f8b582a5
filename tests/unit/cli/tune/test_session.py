"""A run of the tuner on a played machine: what is checked when, what is made, and what is chosen."""

from dataclasses import replace
from pathlib import Path

import pytest

from cli.tune.candidates import Candidate, all_candidates, neighbours
from cli.tune.decision import Decision, Limits, decide
from cli.tune.format_files import FormatFiles
from cli.tune.measures import Measure
from cli.tune.runner import TrialFailed
from cli.tune.search import Search
from cli.tune.session import Session
from cli.tune.trials import Load, TrialBench
from shared.gguf_header import read_facts
from shared.trials import RequestShape
from tests.factories import Clock
from tests.machines import plain_machine
from tests.unit.cli.tune.recorded import made
from tests.unit.cli.tune.test_format_files import Converter
from tests.unit.shared.test_gguf_header import make_gguf

DEFAULT, SINGLE = Candidate("as-is", 2, 1, 8), Candidate("as-is", 1, 2, 16)
BF16 = Candidate("bf16", 2, 1, 8)

#: By format and number of workers: output tokens/s of 16 clients on two cores with AVX512-BF16, prompts as
#: long as outputs. Of two workers: from the decode and prompt speeds measured with 8 sequences each.
MEDIANS = {
    ("as-is", 2): 143.0,
    ("as-is", 1): 125.0,
    ("bf16", 2): 332.0,
    ("bf16", 1): 300.0,
    ("f16", 2): 228.0,
    ("f16", 1): 205.0,
}
#: What trials of such a machine were seen to differ by, one after the other; the largest is a neighbour's.
NOISE = (1.04, 0.93, 1.0, 0.97, 1.08, 0.55, 1.02, 0.9, 1.05, 0.99)


class PlayedBench(TrialBench):
    """``lucky``: whose first look gives twice what is true."""

    asked: list[tuple[Candidate, bool, bool]]
    clock_of: Clock
    invariant: frozenset[str]
    lucky: Candidate | None

    def try_out(
        self, candidate: Candidate, *, is_short: bool, checks: bool, deadline_s: float
    ) -> Measure:
        self.asked.append((candidate, is_short, checks))
        took_s = (2.5 if is_short else 6.0) + checks
        if self.clock_of.now_s + took_s > deadline_s:
            raise TrialFailed("it was not done when the time was over")
        self.clock_of.now_s += took_s
        speed = MEDIANS[candidate.weight_format, candidate.workers]
        speed *= NOISE[len(self.asked) % len(NOISE)] * (0.8 if candidate.slots < 8 else 1)
        if is_short and candidate == self.lucky:
            speed *= 2
        measure = made(candidate, speed, is_short=is_short, took_s=took_s)
        is_invariant = candidate.weight_format in self.invariant if checks else None
        return replace(measure, batch_invariant=is_invariant)


def make_session(
    folder: Path, budget_s: float, *, limits: Limits, lucky: Candidate | None = None
) -> Session:
    clock, source = Clock(), folder / "m.gguf"
    source.write_bytes(make_gguf(block_count=1))
    files = FormatFiles(source, read_facts(source), folder, Converter(clock, 2.0), clock)
    files.find([])
    bench = PlayedBench(
        files=files.paths,
        load=Load(16, (RequestShape(prompt_tokens=64, output_tokens=64),)),
        machine=plain_machine(2),
        stall_ms=100,
        weights_sharing="auto",
        window_s=1,
        max_context_tokens=512,
        clock=clock,
    )
    bench.asked, bench.clock_of, bench.lucky = [], clock, lucky
    bench.invariant = frozenset({"as-is"})
    search = Search(
        candidates=all_candidates(["as-is", "bf16", "f16"], 2, 16),
        default=DEFAULT,
        single=SINGLE,
        limits=limits,
        budget_s=budget_s,
        making_s=files.expected_s,
        neighbours=lambda best: neighbours(best, 16),
    )
    return Session(search, bench, files, lambda *_: None, clock=clock)


def run(session: Session) -> tuple[Decision, list[tuple[Candidate, bool, bool]], float]:
    assert isinstance(session.bench, PlayedBench)
    clock = session.bench.clock_of
    began_s = clock.now_s
    session.run()
    search = session.search
    decision = decide(search.measures, search.limits, default=DEFAULT, single=SINGLE)
    return decision, session.bench.asked, clock.now_s - began_s


@pytest.mark.parametrize("lucky", [None, Candidate("f16", 1, 2, 16), Candidate("as-is", 1, 2, 16)])
@pytest.mark.parametrize("budget_s", [60.0, 120.0])
def test_the_best_wins_on_a_noisy_machine_whoever_is_lucky_at_first(
    tmp_path: Path, budget_s: float, lucky: Candidate | None
) -> None:
    session = make_session(tmp_path, budget_s, limits=Limits(), lucky=lucky)
    decision, _, spent_s = run(session)
    assert decision.chosen is not None
    chosen = decision.chosen.measure.candidate
    assert (chosen.weight_format, chosen.workers, chosen.slots) == ("bf16", 2, 8)
    assert decision.gain_over_default is not None
    assert decision.gain_over_default > 1.8  # 2.3, less what noise may take
    assert spent_s <= budget_s + 1


def test_files_are_made_within_the_budget(tmp_path: Path) -> None:
    session = make_session(tmp_path, 12.0, limits=Limits())
    _, asked, spent_s = run(session)
    assert spent_s <= 13
    assert {candidate.weight_format for candidate, _, _ in asked} == {"as-is", "bf16"}


def test_full_trials_check_the_batch_once_for_each_kind(tmp_path: Path) -> None:
    _, asked, _ = run(make_session(tmp_path, 300.0, limits=Limits()))
    checked = [(c.weight_format, c.threads > 1, c.slots) for c, _, checks in asked if checks]
    assert not [c for c, is_short, checks in asked if is_short and checks]
    assert ("bf16", False, 8) in checked
    assert len(checked) == len(set(checked))


def test_where_only_that_may_be_chosen_the_first_look_checks_it(tmp_path: Path) -> None:
    decision, asked, _ = run(make_session(tmp_path, 300.0, limits=Limits(deterministic=True)))
    assert all(is_short for _, is_short, checks in asked if checks)
    assert {c.weight_format for c, is_short, _ in asked if not is_short} == {"as-is"}
    assert decision.chosen is not None
    assert decision.chosen.measure.candidate.weight_format == "as-is"
    refused = {row.measure.candidate.weight_format: row.refusal for row in decision.rows}
    assert refused["bf16"] == "its tokens depend on the batch"
