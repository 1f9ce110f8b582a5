"""What a record changes in the settings of who starts workers. Pure.

What was said explicitly (a flag, the environment) wins over a record, field by field.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.settings import Settings
from shared.tuning import TuneRecord

#: Settings that a record has an opinion on, but for the layout.
_FIELDS = ("slots", "prefill_chunk_tokens", "weight_format")


@dataclass(frozen=True, slots=True)
class Tuned:
    """``workers`` and ``threads`` are None where the record's are not to be used. ``kept`` names what was
    said explicitly, and otherwise than the record has it."""

    changes: Mapping[str, Any]
    workers: int | None
    threads: int | None
    kept: tuple[str, ...]

    def __str__(self) -> str:
        words = [f"{name} {value}" for name, value in self.changes.items()]
        if self.workers:
            words.insert(0, f"{self.workers} workers x {self.threads} threads")
        text = ", ".join(words) or "nothing of it"
        return text + (f" (explicit: {', '.join(self.kept)})" if self.kept else "")


def apply_record(
    record: TuneRecord, settings: Settings, *, has_layout: bool, workers: int | None
) -> Tuned:
    """``has_layout``: workers or threads were given; the record's are one choice, so none is used then.
    ``workers`` that are to share the load, if that is known: slots for another number of them would be too
    many or too few."""
    explicit = settings.model_fields_set
    changes, kept = {}, []
    is_other = workers is not None and workers != record.workers
    for name in _FIELDS:
        if name == "slots" and is_other and name not in explicit:
            continue
        if name not in explicit:
            changes[name] = getattr(record, name)
        elif getattr(settings, name) != getattr(record, name):
            kept.append(name)
    if has_layout:
        kept.append("workers and threads")
        return Tuned(changes, None, None, tuple(kept))
    return Tuned(changes, record.workers, record.threads, tuple(kept))
