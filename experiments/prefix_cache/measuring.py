"""The same prompt begun in three ways, for prefixes of growing length, round by round."""

from experiments.frame.probing import Probe
from experiments.frame.rounds import in_turn
from experiments.frame.samples import Case, Samples, Values
from experiments.frame.setting import Setting
from experiments.frame.watch import Watch
from experiments.probe.orders import Begin, Way
from shared.errors import BadRequest

OWN_TOKENS = 16
WAYS: tuple[Way, ...] = ("recompute", "restore", "same slot")
_PREFIXES = (64, 128, 256, 512, 1024, 2048)
_QUICK_PREFIXES = (64, 128, 256, 512)
_OUTPUT_TOKENS = 8
_LEAST_PREFIX = 2


def prefixes_of(setting: Setting) -> tuple[int, ...]:
    beside = OWN_TOKENS + _OUTPUT_TOKENS
    return setting.points or setting.within_context(
        setting.choose(_PREFIXES, _QUICK_PREFIXES), beside
    )


def check(setting: Setting) -> None:
    prefixes = prefixes_of(setting)
    if not prefixes:
        raise BadRequest(
            f"the context of {setting.model.name} is {setting.facts.context_tokens} tokens: too "
            f"short",
            field="--model",
        )
    if prefixes[0] < _LEAST_PREFIX:
        raise BadRequest(
            f"--prefixes: {prefixes[0]} is less than {_LEAST_PREFIX}", field="--prefixes"
        )
    context_tokens = prefixes[-1] + OWN_TOKENS + _OUTPUT_TOKENS
    setting.check_context("--prefixes", context_tokens)
    setting.check_memory(slots=2, context_tokens=context_tokens)


def measure(setting: Setting, samples: Samples, watch: Watch) -> None:
    prefixes = prefixes_of(setting)
    with Probe(
        setting.model.path,
        setting.cores,
        slots=2,
        context_tokens=prefixes[-1] + OWN_TOKENS + _OUTPUT_TOKENS,
        check_s=2,
    ) as probe:
        samples.facts |= {
            "own_tokens": OWN_TOKENS,
            "is_exact_expected": probe.ready.batch_invariant,
            "format": probe.ready.description,
            "kv_bytes_per_token": setting.facts.kv_bytes_per_token,
        }

        def run(case: Case) -> Values:
            way = next(way for way in WAYS if way == case["way"])
            answer = probe.ask(
                Begin(
                    prefix_tokens=int(case["prefix"]),
                    own_tokens=OWN_TOKENS,
                    output_tokens=_OUTPUT_TOKENS,
                    way=way,
                )
            )
            return {
                "ttft_ms": answer.series[0],
                "copy_ms": answer.series[1] if way == "restore" else None,
                "tokens": list(answer.tokens),
                "state_bytes": answer.num_bytes,
                "delayed_share": answer.delayed_share,
            }

        run({"prefix": prefixes[0], "way": "recompute"})  # warms up
        cases: list[Case] = [{"prefix": prefix, "way": way} for prefix in prefixes for way in WAYS]
        in_turn(samples, cases, setting.rounds, run, watch)
