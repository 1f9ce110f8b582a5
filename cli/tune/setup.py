"""What a run of the tuner is made of, from settings and options: candidates that fit, a search, trials."""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from cli.tune.candidates import (
    MAX_CHUNK_ROWS,
    Candidate,
    all_candidates,
    least_bytes,
    neighbours,
    slots_for,
)
from cli.tune.decision import Limits
from cli.tune.format_files import FormatFiles
from cli.tune.formats import FormatChoice, fits_disk, size_bytes, wanted_formats
from cli.tune.search import Search
from cli.tune.trials import Load, TrialBench
from shared.cores import UsableCores, memory_available_bytes, usable_cores
from shared.errors import SetupError
from shared.footprint import footprint_of
from shared.gguf_header import ModelFacts, read_facts
from shared.models import ResolvedModel
from shared.settings import Settings
from shared.weight_formats import AS_IS

_MEMORY_SHARE = 0.8
_CORES_FOLDER = "cores"


@dataclass(frozen=True, slots=True)
class Plan:
    model: ResolvedModel
    facts: ModelFacts
    machine: UsableCores
    load: Load
    limits: Limits
    default: Candidate
    single: Candidate
    candidates: tuple[Candidate, ...]
    left_out: tuple[str, ...]
    context_tokens: int


def make_plan(
    settings: Settings,
    model: ResolvedModel,
    load: Load,
    *,
    formats: FormatChoice,
    limits: Limits,
) -> Plan:
    """Raises ``SetupError`` where nothing fits."""
    facts, machine = read_facts(model.path), usable_cores()
    num_cores = len(machine.cores)
    footprint = footprint_of(facts, slots=1, context_tokens=settings.context_tokens)
    if load.longest_tokens > footprint.context_tokens:
        raise SetupError(
            f"prompt and output (--prompt-tokens, --output-tokens, or a line of --trace) are "
            f"{load.longest_tokens} tokens together, and the context of {model.name} is "
            f"{footprint.context_tokens} here (the model's own is {facts.context_tokens}; "
            "MINI_VLLM_CONTEXT_TOKENS is the service's)"
        )
    kv_bytes = footprint.kv_cache_bytes
    free_bytes = round(memory_available_bytes() * _MEMORY_SHARE)
    room_bytes = min(free_bytes, limits.memory_bytes or free_bytes)
    left_out, names = [], []
    for name in wanted_formats(facts, formats):
        if fits_disk(facts, model.path, name, settings.model_dir):
            names.append(name)
        else:
            left_out.append(f"{name}: no room on the disk for its file")
    fitting = []
    for candidate in all_candidates(names, num_cores, load.concurrency):
        need = least_bytes(candidate, size_bytes(facts, candidate.weight_format), kv_bytes)
        if need <= room_bytes:
            fitting.append(candidate)
        else:
            left_out.append(f"{candidate}: needs {need / 1e9:.1f} GB of {room_bytes / 1e9:.1f} GB")
    if not fitting:
        raise SetupError(
            "no layout fits into memory: " + "; ".join(left_out) + "; a smaller "
            "MINI_VLLM_CONTEXT_TOKENS needs less"
        )
    default = Candidate(AS_IS, num_cores, 1, settings.slots, MAX_CHUNK_ROWS)
    single = Candidate(AS_IS, 1, num_cores, slots_for(load.concurrency, 1))
    return Plan(
        model=model,
        facts=facts,
        machine=machine,
        load=load,
        limits=Limits(limits.objective, limits.memory_bytes, kv_bytes, limits.deterministic),
        default=default,
        single=single,
        candidates=tuple(fitting),
        left_out=tuple(left_out),
        context_tokens=footprint.context_tokens,
    )


def make_search(plan: Plan, budget_s: float, files: FormatFiles) -> Search:
    allowed = set(plan.candidates)
    own = [c for c in (plan.default, plan.single) if fits(plan, c)]
    default = plan.default if plan.default in own else plan.candidates[0]
    single = plan.single if plan.single in own else default
    formats = {candidate.weight_format for candidate in allowed}
    return Search(
        candidates=plan.candidates,
        default=default,
        single=single,
        limits=plan.limits,
        budget_s=budget_s,
        making_s=files.expected_s,
        neighbours=lambda best: [
            c
            for c in neighbours(best, plan.load.concurrency)
            if c.weight_format in formats and fits(plan, c)
        ],
    )


def make_files(plan: Plan, settings: Settings) -> FormatFiles:
    files = FormatFiles(plan.model.path, plan.facts, settings.model_dir)
    files.find({c.weight_format for c in plan.candidates})
    return files


def make_bench(plan: Plan, settings: Settings, files: FormatFiles, window_s: float) -> TrialBench:
    return TrialBench(
        files=files.paths,
        load=plan.load,
        machine=plan.machine,
        stall_ms=settings.prefill_stall_ms,
        weights_sharing=settings.weights_sharing,
        window_s=window_s,
        max_context_tokens=plan.facts.context_tokens,
    )


def cores_in_use(host_dir: Path) -> list[str]:
    """Cores that workers of this host hold now: their figures and ours would spoil each other."""
    held = []
    for path in sorted((host_dir / _CORES_FOLDER).glob("core-*.lock")):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(path.stem.removeprefix("core-"))
        finally:
            os.close(fd)
    return held


def fits(plan: Plan, candidate: Candidate) -> bool:
    need = least_bytes(
        candidate, size_bytes(plan.facts, candidate.weight_format), plan.limits.kv_bytes_per_slot
    )
    room = memory_available_bytes() * _MEMORY_SHARE
    return need <= min(room, plan.limits.memory_bytes or room)
