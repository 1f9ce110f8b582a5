"""The same answer twice, round by round. One long answer holds all shorter ones: greedy tokens do not know
how many will follow."""

from experiments.frame.probing import Probe
from experiments.frame.rounds import in_turn
from experiments.frame.samples import Case, Samples, Values
from experiments.frame.setting import Setting
from experiments.frame.watch import Watch
from experiments.probe.orders import Generate
from shared.errors import BadRequest

PROMPT_TOKENS = 16
_LENGTHS = (10, 25, 50, 100)
_QUICK_LENGTHS = (4, 8, 16, 24)
#: Recomputed in chunks of so many rows, the tokens are the same; more take another kernel.
_CHUNKS = (2, 7, 24, 56)
_USUAL_CHUNK = 56
_CHECKED_TOKENS = 12
_MAX_S = 90.0


def lengths_of(setting: Setting) -> tuple[int, ...]:
    return setting.choose(_LENGTHS, _QUICK_LENGTHS)


def check(setting: Setting) -> None:
    lengths = lengths_of(setting)
    if lengths[0] < 2:
        raise BadRequest("--lengths: 1 token needs no cache; at least 2", field="--lengths")
    setting.check_context("--lengths", PROMPT_TOKENS + lengths[-1])
    setting.check_memory(slots=2, context_tokens=PROMPT_TOKENS + lengths[-1])


def measure(setting: Setting, samples: Samples, watch: Watch) -> None:
    length = lengths_of(setting)[-1]
    context_tokens = min(PROMPT_TOKENS + length + 1, setting.facts.context_tokens)
    # Two slots: the check of invariance compares a row alone with one in company.
    with Probe(
        setting.model.path,
        setting.cores,
        slots=2,
        context_tokens=context_tokens,
        check_s=2,
    ) as probe:
        samples.facts |= {
            "lengths": list(lengths_of(setting)),
            "prompt_tokens": PROMPT_TOKENS,
            "is_exact_expected": probe.ready.batch_invariant,
            "format": probe.ready.description,
        }

        def generate(case: Case, output_tokens: int) -> Values:
            order = Generate(
                prompt_tokens=PROMPT_TOKENS,
                output_tokens=output_tokens,
                chunk_tokens=int(case["chunk"]),
                recomputes=case["way"] == "recomputed",
                max_s=_MAX_S,
            )
            answer = probe.ask(order)
            return {
                "token_s": list(answer.series),
                "tokens": list(answer.tokens),
                "total_s": answer.series[-1],
                "delayed_share": answer.delayed_share,
            }

        ways: list[Case] = [{"way": way, "chunk": _USUAL_CHUNK} for way in ("cached", "recomputed")]
        generate(ways[0], 4)  # warms up
        in_turn(samples, ways, setting.rounds, lambda case: generate(case, length), watch)
        few = min(_CHECKED_TOKENS, length)
        checks: list[Case] = [{"way": "recomputed", "chunk": chunk} for chunk in _CHUNKS[:-1]]
        in_turn(samples, checks, 1, lambda case: generate(case, few), watch)
