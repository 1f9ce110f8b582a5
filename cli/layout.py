"""How many workers with how many threads each. Pure."""

from dataclasses import dataclass

from shared.errors import SetupError

#: Of the available memory, what workers may take together.
_MEMORY_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Layout:
    workers: int
    threads: int


def plan_layout(
    num_cores: int,
    memory_bytes: int,
    worker_bytes: int,
    workers: int | None = None,
    threads: int | None = None,
) -> Layout:
    """One worker per core, as many as memory allows, and all cores in use; what is given is kept.
    Raises ``SetupError`` where a single worker has no room or more threads than cores are asked."""
    if threads is not None and threads > num_cores:
        raise SetupError(f"--threads {threads}: only {num_cores} cores are usable here")
    if workers is None:
        fitting = int(memory_bytes * _MEMORY_SHARE) // worker_bytes
        if fitting < 1:
            raise SetupError(
                f"one worker needs about {worker_bytes / 1e9:.1f} GB and {memory_bytes / 1e9:.1f} GB "
                "are available; a smaller MINI_VLLM_CONTEXT_TOKENS or MINI_VLLM_SLOTS needs less"
            )
        workers = max(1, min(num_cores // (threads or 1), fitting))
    return Layout(workers, threads or max(1, num_cores // workers))
