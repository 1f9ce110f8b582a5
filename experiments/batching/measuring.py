"""Steps of more and more sequences, all at the same place of the same text."""

from dataclasses import asdict

from experiments.analysis.work import work_of
from experiments.batching.judging import LEAST_POINTS
from experiments.frame.probing import Probe
from experiments.frame.rounds import in_turn
from experiments.frame.samples import Case, Samples, Values
from experiments.frame.setting import Setting
from experiments.frame.watch import Watch
from experiments.probe.orders import Decode, Read
from shared.errors import BadRequest

POSITION = 64
_SEQUENCES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_QUICK_SEQUENCES = (1, 2, 4, 8, 16)
_MOST_SEQUENCES = 128
_CONTEXT_TOKENS = 255
_PROMPT_TOKENS = 224
#: The largest chunk that gives the tokens of single rows.
_CHUNK = 56
_STEPS = 24
_QUICK_STEPS = 10
_MAX_S = 4.0
_QUICK_MAX_S = 1.5


def sequences_of(setting: Setting) -> tuple[int, ...]:
    return setting.choose(_SEQUENCES, _QUICK_SEQUENCES)


def check(setting: Setting) -> None:
    counts = sequences_of(setting)
    if len(counts) < LEAST_POINTS:
        raise BadRequest(
            f"--sequences: {counts[0]} alone cannot be compared; at least {LEAST_POINTS} numbers",
            field="--sequences",
        )
    if counts[-1] > _MOST_SEQUENCES:
        raise BadRequest(
            f"--sequences: {counts[-1]} is more than {_MOST_SEQUENCES}", field="--sequences"
        )
    setting.check_context("the prompts of batching", _CONTEXT_TOKENS)
    setting.check_memory(slots=counts[-1], context_tokens=_CONTEXT_TOKENS)


def measure(setting: Setting, samples: Samples, watch: Watch) -> None:
    counts = sequences_of(setting)
    max_s = _QUICK_MAX_S if setting.is_quick else _MAX_S
    steps = _QUICK_STEPS if setting.is_quick else _STEPS
    with Probe(
        setting.model.path, setting.cores, slots=counts[-1], context_tokens=_CONTEXT_TOKENS
    ) as probe:
        samples.facts |= {
            "position": POSITION,
            "threads": setting.threads,
            "work": asdict(work_of(setting.facts, probe.ready.num_vocab)),
            "pads": probe.ready.pads_at(POSITION),
        }

        def run(case: Case) -> Values:
            if case["kind"] == "prompt":
                prompt = probe.ask(Read(tokens=_PROMPT_TOKENS, chunk_tokens=_CHUNK, max_s=max_s))
                rate = prompt.positions[-1] / prompt.series[-1]
                return {"prompt_tokens_per_s": rate, "tokens": prompt.positions[-1]}
            rows = int(case["sequences"])
            answer = probe.ask(Decode(rows=rows, position=POSITION, steps=steps, max_s=max_s))
            return {
                "step_ms": _middle(answer.series),
                "tokens_per_s": rows * len(answer.series) / sum(answer.series) * 1000,
                "delayed_share": answer.delayed_share,
            }

        cases: list[Case] = [{"kind": "decode", "sequences": count} for count in counts]
        in_turn(samples, [{"kind": "prompt"}, *cases], setting.rounds, run, watch)


def _middle(values: tuple[float, ...]) -> float:
    return sorted(values)[len(values) // 2]
