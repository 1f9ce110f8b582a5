"""Records of what the tuner chose: beside the models, one file each, for one model on one kind of machine.

It knows how they are kept and found, not how they are made.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from shared.content_hash import content_hash
from shared.converted import CONVERTED_FOLDER
from shared.cores import usable_cores
from shared.errors import SetupError
from shared.machine import cpu_model, llama_build
from shared.protocol.base import Frozen

TUNING_FOLDER = "tuning"
#: The same notes as of converted copies, so that a large file is hashed once.
_HASHES = Path(CONVERTED_FOLDER) / ".hashes"


class TuneKey(Frozen):
    """What a record holds for, but for the load."""

    model_sha256: str
    cpu: str
    cores: int
    llama_cpp: str

    def difference(self, other: "TuneKey") -> str:
        """Why a record of that key does not hold for this one; empty if it does."""
        words = []
        if self.cpu != other.cpu:
            words.append(f"the CPU is {self.cpu}, and was {other.cpu}")
        if self.cores != other.cores:
            words.append(f"{self.cores} cores are usable, and {other.cores} were")
        if self.llama_cpp != other.llama_cpp:
            words.append(f"llama.cpp is {self.llama_cpp}, and was {other.llama_cpp}")
        return "; ".join(words)


class TuneRecord(Frozen):
    """``quick`` is what `up` measured before its first start; a real `tune` replaces it. ``load`` are
    concurrency, tokens of prompt and of output."""

    key: TuneKey
    kind: Literal["tuned", "quick"]
    model: str
    made_at: float = Field(description="Unix time")
    workers: int = Field(ge=1)
    threads: int = Field(ge=1)
    slots: int = Field(ge=1, le=128)
    prefill_chunk_tokens: int = Field(ge=2, le=56)
    weight_format: str
    objective: str
    concurrency: int = Field(ge=1)
    prompt_tokens: float
    output_tokens: float
    memory_bytes: int = Field(description="of all workers, shared pages counted once")
    context_tokens: int
    figures: dict[str, float | None]
    noise: str = ""

    @property
    def concurrency_class(self) -> int:
        return concurrency_class(self.concurrency)

    @property
    def choice(self) -> str:
        return (
            f"{self.weight_format}, {self.workers} x {self.threads} threads, {self.slots} slots, "
            f"chunks of {self.prefill_chunk_tokens}"
        )

    def __str__(self) -> str:
        made = datetime.fromtimestamp(self.made_at, UTC).strftime("%Y-%m-%d %H:%M")
        return f"{self.kind} record of {made} UTC for {self.concurrency_class} clients"


@dataclass(frozen=True, slots=True)
class Found:
    """``remarks`` say why other records are not used, and whether this one is for another load."""

    record: TuneRecord | None
    remarks: tuple[str, ...] = ()


def concurrency_class(concurrency: int) -> int:
    """The next power of two: 1, 2, 4, 8, ..."""
    return 1 << (concurrency - 1).bit_length()


def tune_key(model_path: Path, model_dir: Path) -> TuneKey:
    """Raises ``SetupError`` for a file that cannot be read."""
    try:
        digest = content_hash(model_path, model_dir / _HASHES)
    except OSError as error:
        raise SetupError(f"{model_path} cannot be read: {error.strerror}") from None
    return TuneKey(
        model_sha256=digest,
        cpu=cpu_model(),
        cores=len(usable_cores().cores),
        llama_cpp=llama_build(),
    )


def has_records(model_dir: Path) -> bool:
    return any((model_dir / TUNING_FOLDER).glob("*.json"))


def find_record(model_dir: Path, key: TuneKey, concurrency: int) -> Found:
    """Of what a `tune` made for this model, machine and build, the record whose load is nearest to so many
    clients, the larger of two that are as near; else a quick one."""
    fitting, remarks = [], []
    for path, record, problem in read_records(model_dir):
        if record is None:
            remarks.append(f"the record {path} cannot be read: {problem}")
        elif record.key.model_sha256 == key.model_sha256:
            if difference := key.difference(record.key):
                remarks.append(f"the {record} is not used: {difference}")
            else:
                fitting.append(record)
    if not fitting:
        return Found(None, tuple(remarks))
    best = max(fitting, key=lambda record: _suitability(record, concurrency))
    asked = f"MINI_VLLM_TUNE_CONCURRENCY={concurrency}"
    for record in fitting:
        if record is not best:
            remarks.append(f"the {record} is not used: the {best} suits {asked} better")
    if best.concurrency_class != concurrency_class(concurrency):
        remarks.append(
            f"no record is for {asked} clients; the nearest is for {best.concurrency_class}, and "
            f"`mini-vllm tune --concurrency {concurrency}` makes one"
        )
    return Found(best, tuple(remarks))


def _suitability(record: TuneRecord, concurrency: int) -> tuple[bool, int, int, float]:
    """More is better."""
    theirs, ours = record.concurrency_class, concurrency_class(concurrency)
    distance = abs(theirs.bit_length() - ours.bit_length())
    return record.kind == "tuned", -distance, theirs, record.made_at


def read_records(model_dir: Path) -> Iterator[tuple[Path, TuneRecord | None, str]]:
    """Each file, and what it holds, or why it cannot be read."""
    for path in sorted((model_dir / TUNING_FOLDER).glob("*.json")):
        try:
            yield path, TuneRecord.model_validate_json(path.read_bytes()), ""
        except OSError as error:
            yield path, None, error.strerror or str(error)
        except ValidationError as error:
            first = error.errors()[0]
            yield path, None, f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def save_record(model_dir: Path, record: TuneRecord) -> Path:
    """In place of one of the same load; a real one also in place of the quick one. Raises ``SetupError``."""
    folder = model_dir / TUNING_FOLDER
    path = folder / _file_name(record)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(record.model_dump(mode="json"), indent=1) + "\n")
        temporary.replace(path)
        if record.kind == "tuned":
            quick = record.model_copy(update={"kind": "quick"})
            (folder / _file_name(quick)).unlink(missing_ok=True)
    except OSError as error:
        raise SetupError(
            f"the record {path} cannot be written: {error.strerror}; MINI_VLLM_MODEL_DIR names "
            "another model directory"
        ) from None
    return path


def clear_records(model_dir: Path, model_sha256: str | None = None) -> list[Path]:
    """Of one model, or all, also those that cannot be read; what was removed."""
    gone = []
    for path, record, _ in read_records(model_dir):
        if model_sha256 is None or (record and record.key.model_sha256 == model_sha256):
            with suppress(FileNotFoundError):
                path.unlink()
            gone.append(path)
    return gone


def _file_name(record: TuneRecord) -> str:
    machine = f"{record.key.cpu}|{record.key.cores}|{record.key.llama_cpp}"
    digest = hashlib.blake2b(machine.encode(), digest_size=4).hexdigest()
    load = "quick" if record.kind == "quick" else f"c{record.concurrency_class}"
    return f"{record.key.model_sha256[:12]}.{digest}.{load}.json"
