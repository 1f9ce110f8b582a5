"""What the tuner and the processes of a trial say to each other: one JSON line each way.

A trial runs one worker's engine under a closed loop of requests, without Redis.
"""

from pydantic import Field

from shared.protocol.base import Frozen
from shared.settings import WeightsSharing


class RequestShape(Frozen):
    prompt_tokens: int = Field(ge=1)
    output_tokens: int = Field(ge=1)


class TrialPlan(Frozen):
    """``clients`` is this worker's share of all; 0: it is loaded, and does nothing."""

    model_path: str
    cores: tuple[int, ...]
    slots: int
    chunk_tokens: int
    context_tokens: int
    weights_sharing: WeightsSharing = "auto"
    stall_ms: float
    clients: int
    shapes: tuple[RequestShape, ...]
    seed: int
    window_s: float = Field(gt=0, description="measured after the warm-up")
    max_warmup_s: float = Field(gt=0, description="then the window begins, whoever still waits")
    is_short: bool = Field(
        False, description="the first prompts are cut, to see a decode step soon"
    )
    check_s: float = Field(0, ge=0, description="for the check of batch invariance; 0: none")


class Step(Frozen):
    """One step of the engine. ``end_s`` is on the clock that all processes of the machine share."""

    end_s: float
    spent_s: float
    output_tokens: int
    prompt_tokens: int


class TrialReport(Frozen):
    """``ttft_ms`` and ``itl_ms`` are samples of the window, between ``begin_s`` and ``end_s``."""

    load_s: float
    batch_invariant: bool | None  #: None: not checked
    begin_s: float
    end_s: float
    steps: tuple[Step, ...]
    ttft_ms: tuple[float, ...]
    itl_ms: tuple[float, ...]
    requests: int = Field(description="that ended in the window")
    slots: int
    clients: int
    kv_cache_bytes: int
    rss_bytes: int
    pss_bytes: int
    cpu_s: float
    #: Threads that could have run had to wait for a core so long: somebody else was on it.
    delayed_s: float
    involuntary_switches: int
    stolen_s: float  #: by the hypervisor, on our cores
    threads: int
