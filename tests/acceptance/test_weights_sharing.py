"""Where the weights of the real model are after loading: in the mapped file, in a copy, or in both."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.models import model_as

#: Loads a model, runs one chunk, and says what stands in anonymous memory and in mapped files, in MB.
PROGRAM = """
import json, sys
from pathlib import Path
def sizes():
    lines = (line.split() for line in open("/proc/self/smaps_rollup"))
    found = {l[0]: int(l[1]) / 1e3 for l in lines if len(l) > 2 and l[1].isdigit()}
    return found["Anonymous:"], found["Rss:"] - found["Anonymous:"]
from worker.backends.llama import LlamaBackend
from worker.backends.base import SlotChunk
before = sizes()
model = LlamaBackend(Path(sys.argv[1]), slots=1, threads=1, context_tokens=64, weights_sharing=sys.argv[2])
model.prefill([SlotChunk(0, range(100, 156), 0)])
after = sizes()
print(json.dumps([after[0] - before[0], after[1] - before[1], model.facts.state_key["repacks"]]))
"""


def load(path: Path, sharing: str) -> tuple[float, float, int]:
    """MB in anonymous memory, MB of files, and whether it may repack."""
    command = [sys.executable, "-c", PROGRAM, str(path), sharing]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    anonymous, files, repacks = json.loads(done.stdout)
    return anonymous, files, repacks


@pytest.mark.parametrize("name", ["Q4_1", "Q4_0"])
def test_shared_weights_are_the_mapped_file_and_private_ones_are_not(
    name: str, model_directory: Path
) -> None:
    path = model_as(name, model_directory)
    weights_mb = path.stat().st_size / 1e6
    shared, private = load(path, "shared"), load(path, "private")
    assert shared[1] > 0.8 * weights_mb > private[1]
    assert private[0] - shared[0] > 0.7 * weights_mb
    assert (shared[2], private[2]) == (0, 1), "their states must not be mixed"


def test_what_runs_as_it_comes_has_no_copy_by_default(model_directory: Path) -> None:
    path = model_as("Q4_1", model_directory)
    auto, shared = load(path, "auto"), load(path, "shared")
    assert auto[0] == pytest.approx(shared[0], abs=15)
    assert auto[1] == pytest.approx(shared[1], abs=15)
