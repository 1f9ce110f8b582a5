"""Which models there are to ask for, made of what the workers report, and what is known of each. Pure."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shared.errors import ModelNotFound
from shared.models import model_name
from shared.protocol import WorkerReport, WorkerState

#: Another name of the gateway's own model.
DEFAULT = "default"
_MAX_LISTED = 10


@dataclass(frozen=True, slots=True)
class ServedModel:
    """Of numbers that differ from worker to worker, the largest; 0 while no worker has told it.
    ``tool_format`` is there if all workers that are ready have it. ``fingerprint`` is the same as long as
    those that are ready have the same builds of llama.cpp and the same file."""

    name: str
    is_own: bool = False
    workers: int = 0
    ready: int = 0
    context_tokens: int = 0
    num_vocab: int = 0
    max_piece_bytes: int = 0
    tool_format: str | None = None
    fingerprint: str | None = None


Models = Mapping[str, ServedModel]


def served_models(own: str, recent: Iterable[str], live: Iterable[WorkerReport]) -> Models:
    """``own`` is the gateway's; ``recent`` had a worker a while ago; ``live`` have one now."""
    reports: dict[str, list[WorkerReport]] = {name: [] for name in (own, *sorted(recent))}
    for report in live:
        reports.setdefault(report.model, []).append(report)
    return {name: _model(name, name == own, found) for name, found in reports.items()}


def _model(name: str, is_own: bool, live: list[WorkerReport]) -> ServedModel:
    ready = [report for report in live if report.state is WorkerState.READY]
    formats = {report.tool_format for report in ready}
    return ServedModel(
        name=name,
        is_own=is_own,
        workers=len(live),
        ready=len(ready),
        context_tokens=max((report.context_tokens for report in live), default=0),
        num_vocab=max((report.num_vocab for report in live), default=0),
        max_piece_bytes=max((report.max_piece_bytes for report in live), default=0),
        tool_format=formats.pop() if len(formats) == 1 else None,
        fingerprint=_fingerprint(name, ready),
    )


def _fingerprint(name: str, ready: Iterable[WorkerReport]) -> str | None:
    kinds = sorted({_kind(report) for report in ready})
    if not kinds or not all(build and description for build, description, _ in kinds):
        return None
    return "fp_" + hashlib.sha256(json.dumps([name, kinds]).encode()).hexdigest()[:12]


def _kind(report: WorkerReport) -> tuple[str, str, str]:
    weights = report.weights.fingerprint if report.weights else ""
    return report.llama_cpp, report.model_description, weights


def find_model(models: Models, asked: str | None, own: str, own_given: str) -> ServedModel:
    """``own_given`` is what the gateway was told for its own: a name, or a path. Raises
    ``ModelNotFound``."""
    if asked is None or asked in (DEFAULT, own_given):
        return models[own]
    if asked in models:
        return models[asked]
    if asked.lower().endswith(".gguf") and model_name(asked) in models:
        return models[model_name(asked)]
    listed = ", ".join(list(models)[:_MAX_LISTED])
    shown = asked if len(asked) <= 100 else asked[:100] + "..."
    raise ModelNotFound(f"No worker serves a model {shown!r}; served: {listed}", field="model")
