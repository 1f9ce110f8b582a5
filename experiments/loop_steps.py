"""The bare engine over a played model: what a step takes beside the model, in all and by part."""

import statistics
from dataclasses import dataclass
from time import monotonic, perf_counter

from experiments.prompts import make_text
from experiments.stopwatch import Stopwatch, TimedDetokenizer, TimedModel, TimedScheduler
from shared.protocol import GenerateRequest, JobArgs
from shared.stream import Entry, append_call
from worker.engine import Engine, Events
from worker.pace import Pace
from worker.sequence import JobTimes

CONTEXT_TOKENS = 4096
PROMPT_CHARS = 256
_CHUNK_TOKENS = 56
_PARTS = ("plan", "commit", "detokenize")


@dataclass(frozen=True, slots=True)
class StepCost:
    """Microseconds. ``step_us`` is the engine's, without the model's; ``events_us`` comes after it.
    ``parts_us`` are of another run, which the watches slow down."""

    sequences: int
    step_us: float
    events_us: float
    parts_us: dict[str, float]

    def figures(self) -> dict[str, float]:
        return {
            "step_us": self.step_us,
            **{f"{name}_us": value for name, value in self.parts_us.items()},
            "events_us": self.events_us,
            "per_token_us": (self.step_us + self.events_us) / self.sequences,
        }


def measure_steps(sequences: int, tokens: int) -> StepCost:
    """Medians over the steps of one run, in which all sequences decode."""
    steps_us, events_us = _run(sequences, tokens, Stopwatch(), is_watched=False)
    watch = Stopwatch()
    watched_us, _ = _run(sequences, tokens, watch, is_watched=True)
    parts = {name: watch.spent_s[name] / len(watched_us) * 1e6 for name in _PARTS}
    return StepCost(sequences, statistics.median(steps_us), statistics.median(events_us), parts)


def _run(
    sequences: int, tokens: int, watch: Stopwatch, *, is_watched: bool
) -> tuple[list[float], list[float]]:
    """The model is watched in any case."""
    engine = _decoding_engine(sequences, tokens, watch, is_watched=is_watched)
    watch.spent_s.clear()
    steps_us, events_us = [], []
    for _ in range(tokens):
        before_s = watch.spent_s["model"]
        begin_s = perf_counter()
        events = engine.step()
        stepped_s = perf_counter()
        _put_into_words(events)
        events_us.append((perf_counter() - stepped_s) * 1e6)
        model_s = watch.spent_s["model"] - before_s
        steps_us.append((stepped_s - begin_s - model_s) * 1e6)
        assert len(events) == sequences, "a step gives an event of each sequence"
    return steps_us, events_us


def _decoding_engine(sequences: int, tokens: int, watch: Stopwatch, *, is_watched: bool) -> Engine:
    """All prompts are computed."""
    engine = Engine(
        TimedModel(watch, slots=sequences, context_tokens=CONTEXT_TOKENS),
        worker="bare",
        chunk_tokens=_CHUNK_TOKENS,
        pace=Pace(0.1),
    )
    if is_watched:
        engine.scheduler = TimedScheduler(
            watch, slots=sequences, context_tokens=CONTEXT_TOKENS, chunk_tokens=_CHUNK_TOKENS
        )
    for number in range(sequences):
        # Those that begin first are not to end before all others have begun.
        request = GenerateRequest(
            prompt=make_text(number, PROMPT_CHARS), max_tokens=2 * tokens, ignore_eos=True
        )
        args = JobArgs(request=request, seed=number)
        engine.admit(f"{number:032x}", 1, args, JobTimes(0, 0, monotonic()))
    for sequence in engine.scheduler.sequences if is_watched else ():
        sequence.detokenizer = TimedDetokenizer(watch)
    while any(s.is_prefilling for s in engine.scheduler.sequences):
        engine.step()
    return engine


def _put_into_words(events: Events) -> None:
    """As a worker's loop does for the round trip."""
    now_s = monotonic()
    entries = [Entry(s.job_id, s.attempt, event, s.busy_ms(now_s)) for s, event in events]
    append_call("worker-0.played", 3600, entries)
