"""A worker that has its cores: loads the model, says that it is ready, and runs jobs until it must stop."""

import logging
from contextlib import closing
from pathlib import Path

from shared.connection import READ_TIMEOUT_S, connect
from shared.errors import SetupError
from shared.failures import forget_failure
from shared.models import ResolvedModel
from shared.protocol import WorkerState
from shared.settings import Settings
from worker.answers import Answers
from worker.caching import make_cache, open_shelf
from worker.engine import Engine
from worker.heart import Heart, Pulse
from worker.illegal_instruction import IllegalInstruction
from worker.intake import Intake
from worker.link import Link
from worker.pace import Pace
from worker.reporter import Reporter
from worker.room import check_room, expected_footprint
from worker.service import Drain, Service
from worker.waiting import announce, when_redis_answers
from worker.weights import weights_of

log = logging.getLogger("worker")

#: How long the self-check of a model may take; it says how far it came.
_SELF_CHECK_S = 2.0


def serve(
    settings: Settings,
    model: ResolvedModel,
    reporter: Reporter,
    pulse: Pulse,
    heart: Heart,
    drain: Drain,
    ready_fd: int | None,
) -> None:
    check_room(settings, model.path)
    illegal = IllegalInstruction(reporter.facts.name)
    illegal.install()
    # Only now: what llama.cpp's threads are pinned to is settled when its library is loaded.
    from worker.backends.library import is_built_with
    from worker.backends.llama import LlamaBackend

    illegal.name_features(is_built_with)

    weights = weights_of(model.path, settings.host_dir)
    reporter.update(weights=weights)
    facts = reporter.facts
    backend = LlamaBackend(
        model.path,
        slots=settings.slots,
        threads=facts.threads,
        context_tokens=settings.context_tokens,
        chat_template=_read_template(settings.chat_template_file),
        prefill_grid=settings.prefill_grid,
        weights_sharing=settings.weights_sharing,
    )
    if settings.chat_template_file and not backend.facts.has_chat_template:
        raise SetupError(
            f"MINI_VLLM_CHAT_TEMPLATE_FILE={settings.chat_template_file}: is no Jinja template that "
            "can be used; the log says why"
        )
    if drain.is_requested:
        backend.close()
        return
    invariant = backend.check_batch_invariance(_SELF_CHECK_S)
    pace, figures = Pace(settings.prefill_stall_ms / 1000), reporter.cache
    shelf = open_shelf(settings, model.path, backend.facts)
    engine = Engine(
        backend,
        worker=facts.name,
        weights=weights,
        chunk_tokens=settings.prefill_chunk_tokens,
        grid_tokens=settings.prefill_grid,
        pace=pace,
        cache=make_cache(settings, backend, pace, figures, shelf),
        figures=figures,
        step_figures=reporter.steps,
    )
    if shelf:
        reporter.refresh_cache = lambda: shelf.tell(figures)
    reporter.num_generated = lambda: engine.num_generated
    reporter.num_active = lambda: engine.num_active
    reporter.num_kv_tokens = lambda: engine.num_kv_tokens
    reporter.weights_bytes = model.path.stat().st_size
    reporter.update(
        slots=backend.facts.slots,
        context_tokens=backend.facts.context_tokens,
        kv_cache_bytes=backend.facts.kv_cache_bytes,
        model_description=backend.facts.description,
        has_chat_template=backend.facts.has_chat_template,
        llama_cpp=backend.facts.llama_cpp,
        batch_invariant=invariant,
        tool_format=backend.facts.tool_format,
        num_vocab=backend.facts.num_vocab,
        max_piece_bytes=backend.facts.max_piece_bytes,
    )

    def may_wait() -> bool:
        pulse.touch()
        return not drain.is_over

    link = Link(
        connect(settings.redis_url),
        incarnation=facts.incarnation,
        model=model.name,
        slots=settings.slots,
        result_ttl_s=settings.result_ttl_s,
        patience=settings.priority_patience,
        may_wait=may_wait,
    )
    intake = Intake(
        connect(settings.redis_url),
        model=model.name,
        incarnation=facts.incarnation,
        heartbeat_ttl_s=settings.heartbeat_ttl_s,
        result_ttl_s=settings.result_ttl_s,
        on_stop=engine.cancel,
        on_shutdown=drain.request,
    )
    if not when_redis_answers(settings.redis_url, intake.open, drain):
        return
    heart.also = intake.beat
    reporter.update(state=WorkerState.READY)
    with closing(connect(settings.redis_url)) as client:

        def tell() -> None:
            heart.beat()
            forget_failure(client, facts.name)

        if not when_redis_answers(settings.redis_url, tell, drain):
            return
    log.info(
        "ready: %s on cores %s, %d threads, %d slots of %d tokens, KV cache %.0f MB, %s",
        backend.facts.description,
        ",".join(map(str, facts.cores)),
        facts.threads,
        backend.facts.slots,
        backend.facts.context_tokens,
        backend.facts.kv_cache_bytes / 1e6,
        "same tokens in any batch" if invariant else "tokens may depend on the batch (this format)",
    )
    log.info(
        "memory: %s expected; now %.0f MB of its own and its share of what it shares",
        expected_footprint(settings, model.path),
        reporter.memory_mb(),
    )
    announce(ready_fd, "ready")
    with Answers(connect(settings.redis_url, timeout_s=READ_TIMEOUT_S), backend, model.name):
        Service(engine, link, intake, pulse, drain, facts.name, weights).run()
    if shelf:
        shelf.close()
        shelf.tell(figures)
    intake.close()
    backend.close()


def _read_template(path: Path | None) -> bytes | None:
    try:
        return path.read_bytes() if path else None
    except OSError as error:
        raise SetupError(f"MINI_VLLM_CHAT_TEMPLATE_FILE={path}: {error.strerror}") from None
