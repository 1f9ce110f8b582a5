"""What an experiment and its probe say to each other: a JSON line each way."""

from typing import Annotated, Literal

from pydantic import Field

from shared.protocol.base import Frozen


class ProbePlan(Frozen):
    """``threads`` may be more than there are ``cores``."""

    model_path: str
    cores: tuple[int, ...]
    threads: int = Field(ge=1)
    slots: int = Field(ge=1)
    context_tokens: int = Field(ge=1)
    largest_chunk_tokens: int = 56
    check_s: float = Field(0, description="for the check of batch invariance; 0: none")


class Ready(Frozen):
    """``buffers_mb`` are those that llama.cpp put weights into, by its names for them; ``pads_from``: the
    position from which on a lone row is computed beside a second one."""

    load_s: float
    batch_invariant: bool | None
    description: str
    llama_cpp: str
    num_vocab: int
    pads_from: int | None
    kv_cache_bytes: int
    buffers_mb: dict[str, float]

    def pads_at(self, position: int) -> bool:
        return self.pads_from is not None and position >= self.pads_from


class Decode(Frozen):
    """Steps of so many sequences, all of them at this position again and again."""

    kind: Literal["decode"] = "decode"
    rows: int = Field(ge=1)
    position: int = Field(ge=0)
    steps: int = Field(ge=1)
    max_s: float


class Read(Frozen):
    """A prompt from its beginning; the answer's series is the time at each border of chunks."""

    kind: Literal["read"] = "read"
    tokens: int = Field(ge=2)
    chunk_tokens: int = Field(ge=2)
    max_s: float


class Generate(Frozen):
    """Greedy. ``recomputes``: for each token all before it again, as if there were no cache."""

    kind: Literal["generate"] = "generate"
    prompt_tokens: int = Field(ge=2)
    output_tokens: int = Field(ge=1)
    chunk_tokens: int = Field(ge=2)
    recomputes: bool
    max_s: float


Way = Literal["recompute", "restore", "same slot"]


class Begin(Frozen):
    """A prompt whose first ``prefix_tokens`` were computed before: how soon its first token comes, and
    which tokens follow. The series: ms to the first token, and of them those of restoring."""

    kind: Literal["begin"] = "begin"
    prefix_tokens: int = Field(ge=2)
    own_tokens: int = Field(ge=2)
    output_tokens: int = Field(ge=1)
    way: Way


class Measure(Frozen):
    """Memory, by now."""

    kind: Literal["memory"] = "memory"


Order = Annotated[Decode | Read | Generate | Begin | Measure, Field(discriminator="kind")]


class Asked(Frozen):
    order: Order


class Answer(Frozen):
    """``series`` as the order says; ``delayed_share``: of the time of its threads, how long they waited for
    a core that somebody else was on."""

    series: tuple[float, ...] = ()
    positions: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    num_bytes: int = 0
    rss_bytes: int = 0
    delayed_share: float = 0.0


class QualityPlan(Frozen):
    """``windows`` of 512 tokens of the text that `model verify` reads."""

    reference_path: str
    model_path: str
    cores: tuple[int, ...]
    windows: int = Field(ge=1)
