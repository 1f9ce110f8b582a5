"""One long answer, and one long prompt, round by round; the clock is read on the way."""

from dataclasses import asdict

from experiments.analysis.work import work_of
from experiments.frame.probing import Probe
from experiments.frame.rounds import in_turn
from experiments.frame.samples import Case, Samples, Values
from experiments.frame.setting import Setting
from experiments.frame.watch import Watch
from experiments.probe.orders import Generate, Read
from shared.errors import BadRequest

PROMPT_TOKENS = 16
_MOST_TOKENS = 2048
_MOST_QUICK_TOKENS = 448
#: Fewer show no curve.
_LEAST_TOKENS = 224
_MAX_ROUNDS = 2
_EXACT_CHUNK = 56
_TILED_CHUNK = 256
_MAX_S = 60.0


def most_tokens(setting: Setting) -> int:
    if setting.points:
        return setting.points[-1]
    usual = _MOST_QUICK_TOKENS if setting.is_quick else _MOST_TOKENS
    return min(usual, setting.facts.context_tokens - PROMPT_TOKENS)


def check(setting: Setting) -> None:
    length = most_tokens(setting)
    if length < _LEAST_TOKENS:
        raise BadRequest(
            f"--max-tokens: {length} are too few to see a curve; at least {_LEAST_TOKENS}",
            field="--max-tokens",
        )
    setting.check_context("--max-tokens", PROMPT_TOKENS + length)
    setting.check_memory(slots=1, context_tokens=PROMPT_TOKENS + length)


def _padded_from(position: int | None, length: int) -> int | None:
    """The token of the answer from which on its row is computed as two, if not from the first such row on:
    the first token comes of the prompt, and the row of token n stands at the prompt's length and n - 1."""
    number = 0 if position is None else position - PROMPT_TOKENS + 1
    return number if 1 < number < length else None


def measure(setting: Setting, samples: Samples, watch: Watch) -> None:
    length = most_tokens(setting)
    with Probe(
        setting.model.path,
        setting.cores,
        context_tokens=PROMPT_TOKENS + length,
        largest_chunk_tokens=_TILED_CHUNK,
    ) as probe:
        samples.facts |= {
            "prompt_tokens": PROMPT_TOKENS,
            "max_tokens": length,
            "work": asdict(work_of(setting.facts, probe.ready.num_vocab)),
            "padded_from": _padded_from(probe.ready.pads_from, length),
        }

        def run(case: Case) -> Values:
            chunk = int(case["chunk"])
            if case["way"] == "cached":
                answer = probe.ask(
                    Generate(
                        prompt_tokens=PROMPT_TOKENS,
                        output_tokens=length,
                        chunk_tokens=chunk,
                        recomputes=False,
                        max_s=_MAX_S,
                    )
                )
                positions = tuple(range(PROMPT_TOKENS, PROMPT_TOKENS + len(answer.series)))
            else:
                answer = probe.ask(
                    Read(tokens=PROMPT_TOKENS + length, chunk_tokens=chunk, max_s=_MAX_S)
                )
                positions = answer.positions
            return {
                # What was in the cache when it was done: the token of the answer itself is not.
                "positions": list(positions),
                "at_s": list(answer.series),
                "total_s": answer.series[-1],
                "delayed_share": answer.delayed_share,
            }

        cases: list[Case] = [
            {"way": "cached", "chunk": _EXACT_CHUNK},
            {"way": "prompt", "chunk": _EXACT_CHUNK},
            {"way": "prompt", "chunk": _TILED_CHUNK},
        ]
        probe.ask(Read(tokens=_EXACT_CHUNK, chunk_tokens=_EXACT_CHUNK, max_s=_MAX_S))  # warms up
        in_turn(samples, cases, min(setting.rounds, _MAX_ROUNDS), run, watch)
