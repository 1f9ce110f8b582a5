"""What a worker says of itself."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from shared.protocol.events import Weights


class WorkerState(StrEnum):
    WAITING = "waiting"  #: for a core
    LOADING = "loading"
    READY = "ready"
    DRAINING = "draining"


class WorkerReport(BaseModel):
    """What a worker says of itself with every heartbeat (``GET /workers``)."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    name: str
    incarnation: str
    pid: int
    host: str
    cores: tuple[int, ...] = ()
    threads: int = 0
    model: str
    model_path: str = ""
    model_description: str = ""
    weights: Weights | None = None  #: none: not known yet
    state: WorkerState
    slots: int = 0
    slots_used: int = 0
    context_tokens: int = 0
    kv_cache_bytes: int = 0
    batch_invariant: bool | None = None
    has_chat_template: bool | None = None
    tool_format: str | None = None  #: how it writes calls of tools; none: it knows no tools
    num_vocab: int = 0
    max_piece_bytes: int = (
        0  #: of the longest token: a prompt has no fewer tokens than bytes over it
    )
    kv_tokens_used: int = 0
    kv_usage: float = 0.0  #: ``kv_tokens_used`` over what the slots hold together; 0 to 1
    tokens_per_s: float = 0.0
    read_gb_per_s: float = 0.0  #: estimate: size of the weights times calls of the model
    throttled_periods: int = 0  #: of its cgroup so far, in which a CPU quota stopped it
    cpu_periods: int = 0  #: of its cgroup so far
    prefill_tokens_per_s: float = 0.0  #: of prompts that are computed, as measured; 0: not yet
    host_dir_id: str = ""  #: the same for all workers that share their host directory
    num_snapshots: int = 0  #: in the host directory
    snapshot_bytes: int = 0  #: in the host directory
    memory_mb: float = 0.0
    cpu_percent: float = 0.0
    started_at: float = 0.0
    llama_cpp: str = ""
