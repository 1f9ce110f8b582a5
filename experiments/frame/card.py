"""The card of a run: the machine and what it can do at best, the model, the versions."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from cli.card import make_card
from experiments.frame.setting import Setting
from shared.cores import memory_rooms
from shared.errors import SetupError
from shared.machine import llama_build

_LIMIT_S = 120.0


def complete_card(setting: Setting) -> dict[str, object]:
    card = make_card()
    machine, facts = setting.machine, setting.facts
    limits = [room.free_bytes for room in memory_rooms() if room.is_container]
    card |= {
        "physical_cores": len({machine.physical[core] for core in machine.cores}),
        "cgroup_memory_left_mb": round(min(limits) / 1e6) if limits else None,
        "threads": setting.threads,
        "model": setting.model.path.name,
        "model_mb": round(facts.size_bytes / 1e6, 1),
        "architecture": facts.architecture,
        "parameters_m": round(facts.num_parameters / 1e6, 1),
        "layers": facts.num_layers,
        "context_tokens": facts.context_tokens,
        "kv_bytes_per_token": facts.kv_bytes_per_token,
        "mini_vllm": version("mini-vllm"),
        "llama_cpp": llama_build(),
        "features": _ask("build"),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return card | measure_memory(setting, sorted({1, setting.threads}))


def measure_memory(setting: Setting, counts: Sequence[int]) -> dict[str, object]:
    """Of so many cores together: read bandwidth, and multiplying, in processes of their own."""
    found = [_measure(setting.cores_for(count)) for count in counts]
    return {
        "read_gb_per_s": {str(entry["threads"]): entry["read_gb_per_s"] for entry in found},
        "f32_gflop_per_s": {str(entry["threads"]): entry["f32_gflop_per_s"] for entry in found},
    }


def _measure(cores: Sequence[int]) -> dict[str, float]:
    found: dict[str, float] = json.loads(_ask("bandwidth", ",".join(map(str, cores))))
    return found


def _ask(module: str, *arguments: str) -> str:
    """What a process of the probe package says."""
    command = [
        *(sys.executable, "-P", "-m", "cli.tether", "SIGKILL", str(os.getpid()), "--"),
        *(sys.executable, "-P", "-m", f"experiments.probe.{module}", *arguments),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=True)
    except subprocess.TimeoutExpired:
        raise SetupError(f"this machine's {module} was not known after {_LIMIT_S:.0f} s") from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines()
        reason = lines[-1] if lines else f"code {error.returncode}"
        raise SetupError(f"this machine's {module} cannot be found out: {reason}") from None
    return done.stdout.strip()


def shown_card(card: Mapping[str, object]) -> dict[str, object]:
    """For people: what is not known is left out, and figures by number of cores are told as "
    "such."""
    shown: dict[str, object] = {}
    for name, value in card.items():
        if isinstance(value, dict):
            shown[name] = ", ".join(f"{entry} on {cores}" for cores, entry in value.items())
        elif value is not None:
            shown[name] = value
    return shown
