"""One process for each number of threads, all there at once and one at work, so that rounds are in turn."""

from contextlib import ExitStack
from dataclasses import asdict

from experiments.analysis.work import work_of
from experiments.frame.card import measure_memory
from experiments.frame.neighbour import NEIGHBOURS, neighbour
from experiments.frame.probing import Probe
from experiments.frame.rounds import in_turn
from experiments.frame.samples import Case, Samples, Values
from experiments.frame.setting import Setting
from experiments.frame.watch import Watch
from experiments.probe.orders import Decode, Read
from shared.errors import BadRequest

POSITION = 128
_PROMPT_TOKENS = 168
_QUICK_PROMPT_TOKENS = 112
_CONTEXT_TOKENS = 255
_CHUNK = 56
_STEPS = 48
_QUICK_STEPS = 24
_MAX_S = 6.0
_QUICK_MAX_S = 1.5
#: With more cores only doublings are tried.
_MAX_SINGLE_CORES = 8
#: Of the cores; more would only wait more.
_MOST_OVERSUBSCRIBED = 4


def counts_of(setting: Setting) -> tuple[int, ...]:
    """1 to all cores, one more, and twice as many."""
    cores = len(setting.machine.cores)
    counts = set(range(1, cores + 1))
    if cores > _MAX_SINGLE_CORES:
        counts = {2**power for power in range(cores.bit_length())} | {cores}
    more = {2 * cores} if setting.is_quick else {cores + 1, 2 * cores}
    return setting.points or tuple(sorted(counts | more))


def check(setting: Setting) -> None:
    counts, cores = counts_of(setting), len(setting.machine.cores)
    if counts[-1] > cores * _MOST_OVERSUBSCRIBED:
        raise BadRequest(
            f"--threads: {counts[-1]}, and this machine has {cores} cores for us; at most "
            f"{_MOST_OVERSUBSCRIBED} for each",
            field="--threads",
        )
    setting.check_context("the prompts of threads", _CONTEXT_TOKENS)
    setting.check_memory(slots=1, context_tokens=_CONTEXT_TOKENS, processes=len(counts))


def measure(setting: Setting, samples: Samples, watch: Watch) -> None:
    counts = counts_of(setting)
    cores = len(setting.machine.cores)
    shared = sorted({min(count, cores) for count in counts})
    with ExitStack() as stack:
        watch.expect(len(counts) + 1)
        watch.begin("read bandwidth")
        samples.facts["card"] = measure_memory(setting, shared)
        watch.end()
        probes: dict[int, Probe] = {}
        for count in counts:
            watch.begin(f"loading, {count} threads")
            probes[count] = stack.enter_context(
                Probe(
                    setting.model.path,
                    setting.cores_for(count),
                    threads=count,
                    context_tokens=_CONTEXT_TOKENS,
                )
            )
            watch.end()
        ready = probes[counts[0]].ready
        samples.facts |= {
            "cores": len(setting.machine.cores),
            "position": POSITION,
            "work": asdict(work_of(setting.facts, ready.num_vocab)),
            "pads": {str(count): probe.ready.pads_at(POSITION) for count, probe in probes.items()},
        }

        def run(case: Case) -> Values:
            probe = probes[int(case["threads"])]
            with neighbour(str(case["neighbour"]), setting.cores_for(1)[0]):
                return _speeds(probe, setting, is_undisturbed=case["neighbour"] == "none")

        cases: list[Case] = [
            {"threads": count, "neighbour": kind} for kind in NEIGHBOURS for count in counts
        ]
        in_turn(samples, cases, setting.rounds, run, watch)


def _speeds(probe: Probe, setting: Setting, *, is_undisturbed: bool) -> Values:
    is_quick = setting.is_quick
    max_s = _QUICK_MAX_S if is_quick else _MAX_S
    prompt_tokens = _QUICK_PROMPT_TOKENS if is_quick else _PROMPT_TOKENS
    prompt = probe.ask(Read(tokens=prompt_tokens, chunk_tokens=_CHUNK, max_s=max_s))
    steps = probe.ask(
        Decode(rows=1, position=POSITION, steps=_QUICK_STEPS if is_quick else _STEPS, max_s=max_s)
    )
    values: Values = {
        "prompt_tokens_per_s": prompt.positions[-1] / prompt.series[-1],
        "decode_tokens_per_s": len(steps.series) / sum(steps.series) * 1000,
        "step_ms": list(steps.series),
    }
    # Threads that share a core wait for each other: that is no noise.
    if is_undisturbed and probe.threads <= len(setting.machine.cores):
        values["delayed_share"] = steps.delayed_share
    return values
