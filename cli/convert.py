"""Copies of a model in another weight format: made once, in a process of their own, and kept."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from cli.partial_file import (
    PartialFile,
    check_disk,
    ended_by_sigterm,
    partial_file,
    remove_leftovers,
)
from cli.progress import Show, wait_showing
from shared.converted import converted_path, has_format
from shared.cores import usable_cores
from shared.errors import ModelUnusable, ServiceError, SetupError
from shared.gguf_header import ModelFacts, read_facts
from shared.weight_formats import estimated_bytes, known_format

#: What an estimate may be wrong by.
_DISK_MARGIN = 1.25


def convert(
    source: Path,
    to: str,
    model_dir: Path,
    *,
    progress: Show | None = None,
    free_bytes: int | None = None,
) -> Path:
    """The copy, or the source itself if it is of that format. One that is there is taken; where another
    process makes it, this waits. ``free_bytes`` of the disk, if not what it says. Raises ``SetupError``
    and ``ModelUnusable``, and leaves nothing unfinished behind."""
    facts = read_facts(source)
    if has_format(source, to):
        return source
    target = converted_path(source, to, model_dir)
    if target.is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target.parent)
        with ended_by_sigterm(), partial_file(target) as partial:
            if partial:
                expected = _expected_bytes(facts, to)
                free = shutil.disk_usage(target.parent).free if free_bytes is None else free_bytes
                check_disk(round(expected * _DISK_MARGIN), free, target.parent)
                _quantize(source, to, partial, lambda done: progress and progress(done, expected))
                _check(partial.path, to, facts)
                if converted_path(source, to, model_dir) != target:
                    raise SetupError(f"{source} changed while it was converted; try again")
                partial.keep()
    except OSError as error:
        raise SetupError(
            f"{target.parent} cannot be written by user {os.getuid()}: {error.strerror or error}; "
            "MINI_VLLM_MODEL_DIR names another model directory"
        ) from None
    return target


def _expected_bytes(facts: ModelFacts, to: str) -> int:
    return estimated_bytes(
        to,
        num_parameters=facts.num_parameters,
        table_parameters=facts.table_parameters,
        header_bytes=facts.header_bytes,
    )


def _quantize(source: Path, to: str, partial: PartialFile, show: Callable[[int], object]) -> None:
    threads = len(usable_cores().cores)
    process = subprocess.Popen(
        [
            *(sys.executable, "-P", "-m", "cli.tether", "SIGKILL", str(os.getpid()), "--"),
            *(sys.executable, "-P", "-m", "worker.backends.quantize", str(source.absolute())),
            *(str(partial.path.absolute()), str(known_format(to).file_type), str(threads)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        # The lock outlives us as long as somebody writes.
        pass_fds=[partial.fd],
        start_new_session=True,
    )
    assert process.stderr is not None
    try:
        wait_showing(process, lambda: show(os.fstat(partial.fd).st_size))
    finally:
        words = process.stderr.read().decode(errors="replace").strip()
        process.stderr.close()
    if process.returncode:
        reason = words or f"the process that did it ended with code {process.returncode}"
        raise ModelUnusable(f"{source} could not be converted to {to}: {reason[-500:]}")
    show(os.fstat(partial.fd).st_size)


def _check(path: Path, to: str, source: ModelFacts) -> None:
    try:
        sound = has_format(path, to) and read_facts(path).num_parameters == source.num_parameters
    except ServiceError:
        sound = False
    if not sound:
        raise ModelUnusable(f"llama.cpp wrote no whole {to} file; it is not kept")
