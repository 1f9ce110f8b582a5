"""One process for each format, all there at once and one at work; then the quality, two at a time."""

import json
import time
from contextlib import ExitStack
from pathlib import Path

from cli.convert import convert
from cli.line_process import LineProcess
from cli.tune.formats import fits_disk, size_bytes
from experiments.frame.probing import Probe, ProbeFailed
from experiments.frame.rounds import in_turn
from experiments.frame.samples import Case, Samples, Values
from experiments.frame.setting import Setting
from experiments.frame.watch import Watch
from experiments.probe.orders import Decode, Measure, QualityPlan, Read
from experiments.quantization.formats import chosen_formats, own_format, reference_of
from shared.cores import memory_available_bytes
from shared.errors import SetupError
from shared.weight_formats import AS_IS

SEQUENCES = (1, 8, 16)
_POSITION = 64
_CONTEXT_TOKENS = 255
_PROMPT_TOKENS = 168
_QUICK_PROMPT_TOKENS = 112
_CHUNK = 56
_STEPS = 24
_QUICK_STEPS = 6
_MAX_S = 1.5
_QUICK_MAX_S = 0.8
_WINDOWS = 4
_QUALITY_LIMIT_S = 600.0
#: What a process takes beside weights and KV cache.
_OVERHEAD_BYTES = 200_000_000


def formats_of(setting: Setting) -> tuple[str, ...]:
    return chosen_formats(setting.facts, setting.formats, is_quick=setting.is_quick)


def check(setting: Setting) -> None:
    names = formats_of(setting)
    setting.check_context("the prompts of quantization", _CONTEXT_TOKENS)
    setting.check_memory(slots=SEQUENCES[-1], context_tokens=_CONTEXT_TOKENS)
    kv_bytes = setting.facts.kv_bytes_per_token * (_CONTEXT_TOKENS + 1) * SEQUENCES[-1]
    need = sum(size_bytes(setting.facts, name) + kv_bytes + _OVERHEAD_BYTES for name in names)
    free = memory_available_bytes()
    if need > free:
        raise SetupError(
            f"not enough memory: {len(names)} formats at once take {need / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB are free; --formats names fewer",
            field="--formats",
        )
    for name in names:
        if not fits_disk(setting.facts, setting.model.path, name, setting.settings.model_dir):
            raise SetupError(
                f"--formats: there is no room on the disk for {name}", field="--formats"
            )


def measure(setting: Setting, samples: Samples, watch: Watch) -> None:
    names = formats_of(setting)
    reference = reference_of(setting.facts, names)
    samples.facts |= {
        "own": own_format(setting.facts),
        "reference": reference,
        "windows": 1 if setting.is_quick else _WINDOWS,
        "formats": {},
    }
    watch.expect(2 * len(names))
    paths = {name: _file(setting, name, watch) for name in names}
    with ExitStack() as stack:
        probes: dict[str, Probe] = {}
        for name in names:
            watch.begin(f"loading {name}")
            probes[name] = stack.enter_context(
                Probe(
                    paths[name],
                    setting.cores,
                    slots=SEQUENCES[-1],
                    context_tokens=_CONTEXT_TOKENS,
                )
            )
            ready = probes[name].ready
            samples.facts["formats"][name] = {
                "file_mb": paths[name].stat().st_size / 1e6,
                "rss_mb": (probes[name].ask(Measure()).rss_bytes - ready.kv_cache_bytes) / 1e6,
                "load_s": ready.load_s,
                "buffers_mb": ready.buffers_mb,
            }
            watch.end()
        cases: list[Case] = [{"format": name} for name in names]
        in_turn(
            samples,
            cases,
            setting.rounds,
            lambda case: _speeds(probes[str(case["format"])], setting),
            watch,
        )
    qualities: list[Case] = [{"quality": name} for name in names]
    in_turn(
        samples,
        qualities,
        1,
        lambda case: _quality(
            setting, paths[reference], paths[str(case["quality"])], samples.facts["windows"]
        ),
        watch,
    )


def _file(setting: Setting, name: str, watch: Watch) -> Path:
    watch.begin(f"the file of {name}")
    source = setting.model.path
    path = source if name == AS_IS else convert(source, name, setting.settings.model_dir)
    watch.end()
    return path


def _speeds(probe: Probe, setting: Setting) -> Values:
    is_quick = setting.is_quick
    max_s = _QUICK_MAX_S if is_quick else _MAX_S
    tokens = _QUICK_PROMPT_TOKENS if is_quick else _PROMPT_TOKENS
    prompt = probe.ask(Read(tokens=tokens, chunk_tokens=_CHUNK, max_s=max_s))
    values: Values = {
        "prompt_tokens_per_s": prompt.positions[-1] / prompt.series[-1],
        "delayed_share": prompt.delayed_share,
    }
    for rows in SEQUENCES:
        steps = _QUICK_STEPS if is_quick else _STEPS
        answer = probe.ask(Decode(rows=rows, position=_POSITION, steps=steps, max_s=max_s))
        speed = rows * len(answer.series) / sum(answer.series) * 1000
        values[f"decode_{rows}_tokens_per_s"] = speed
    return values


def _quality(setting: Setting, reference: Path, path: Path, windows: int) -> Values:
    """Of a format against the best one, and of that against itself: its perplexity is wanted, "
    "too."""
    plan = QualityPlan(
        reference_path=str(reference),
        model_path=str(path),
        cores=setting.cores,
        windows=windows,
    )
    process = LineProcess("experiments.probe.quality", error=ProbeFailed)
    try:
        process.send(plan.model_dump_json())
        found = json.loads(process.line(time.monotonic() + _QUALITY_LIMIT_S))
    finally:
        process.end()
    return {
        "perplexity": found["perplexity_b"],
        "kl_mean": found["kl_mean"],
        "top_agreement": found["top_agreement"],
        "scored_tokens": found["tokens"],
    }
