"""What an experiment runs on and how much of it: the model, the cores, the lengths that were asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.cores import UsableCores, memory_available_bytes, memory_rooms, usable_cores
from shared.errors import BadRequest, SetupError
from shared.footprint import check_fit, footprint_of
from shared.gguf_header import ModelFacts, read_facts
from shared.models import ResolvedModel, resolve_model
from shared.settings import Settings
from worker.placement import choose_cores

_MAX_POINTS = 32


@dataclass(frozen=True, slots=True)
class Setting:
    """``points`` are what the experiment varies (lengths, sequences, threads), empty: its own "
    "choice."""

    model: ResolvedModel
    facts: ModelFacts
    machine: UsableCores
    settings: Settings
    is_quick: bool
    rounds: int
    threads: int
    points: tuple[int, ...] = ()
    formats: tuple[str, ...] = ()
    card: dict[str, object] = field(default_factory=dict)

    def choose(self, full: Sequence[int], quick: Sequence[int]) -> tuple[int, ...]:
        """The points asked for, else those of a full or a quick run."""
        return self.points or tuple(quick if self.is_quick else full)

    def within_context(self, points: Sequence[int], beside: int) -> tuple[int, ...]:
        """Without those that were not asked for and that this model cannot hold."""
        return tuple(p for p in points if p + beside <= self.facts.context_tokens)

    @property
    def cores(self) -> tuple[int, ...]:
        return self.cores_for(self.threads)

    def cores_for(self, threads: int) -> tuple[int, ...]:
        """As a worker of so many threads takes them; all, if it has more threads than there are."""
        cores = self.machine.cores
        return choose_cores(cores, min(threads, len(cores)), self.machine)

    def check_context(self, field_name: str, num_tokens: int) -> None:
        if num_tokens > self.facts.context_tokens:
            raise BadRequest(
                f"{field_name}: {num_tokens} tokens are needed, and the context of "
                f"{self.model.name} is "
                f"{self.facts.context_tokens}",
                field=field_name,
            )

    def check_memory(self, *, slots: int, context_tokens: int, processes: int = 1) -> None:
        """Raises ``SetupError`` where so many probes of this shape cannot run at once."""
        facts = self.facts
        need = footprint_of(facts, slots=slots, context_tokens=context_tokens)
        whole_bytes = need.shared_weights_bytes + processes * need.private_bytes
        free_bytes = memory_available_bytes()
        if processes > 1 and whole_bytes > free_bytes:
            raise SetupError(
                f"not enough memory: {processes} processes with this model take "
                f"{whole_bytes / 1e6:.0f} MB, and {free_bytes / 1e6:.0f} MB are free; take a "
                f"smaller "
                "model, or fewer of them"
            )
        try:
            check_fit(
                facts,
                slots=slots,
                context_tokens=context_tokens,
                cached_bytes=0,
                rooms=memory_rooms(),
            )
        except SetupError as error:
            raise SetupError(f"not enough memory: {error.message}") from None


def make_setting(
    settings: Settings,
    model: str | None,
    *,
    is_quick: bool,
    rounds: int | None,
    threads: int | None,
    points: tuple[int, ...] = (),
    formats: tuple[str, ...] = (),
) -> Setting:
    """Raises ``UnknownModel``, ``ModelUnusable`` and ``BadRequest``."""
    resolved = resolve_model(model or settings.model, settings.model_dir)
    machine = usable_cores()
    if threads is not None and threads > len(machine.cores):
        raise BadRequest(
            f"--threads: {threads}, and this machine has {len(machine.cores)} cores for us",
            field="--threads",
        )
    return Setting(
        model=resolved,
        facts=read_facts(resolved.path),
        machine=machine,
        settings=settings,
        is_quick=is_quick,
        rounds=rounds or (1 if is_quick else 3),
        threads=threads or len(machine.cores),
        points=points,
        formats=formats,
    )


def parse_points(text: str | None, field_name: str, *, least: int = 1) -> tuple[int, ...]:
    """``16,32,64``; in order, each once. Raises ``BadRequest``."""
    if text is None:
        return ()
    try:
        points = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise BadRequest(
            f"{field_name}: {text[:80]!r} is no list of whole numbers, as 16,32,64",
            field=field_name,
        ) from None
    if points[0] < least:
        raise BadRequest(f"{field_name}: {points[0]} is less than {least}", field=field_name)
    if len(points) > _MAX_POINTS:
        raise BadRequest(
            f"{field_name}: {len(points)} of them, at most {_MAX_POINTS}", field=field_name
        )
    return points
