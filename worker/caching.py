"""The prefix cache of a worker, put together from its settings and its model."""

import logging
from pathlib import Path

from shared.content_hash import content_hash
from shared.settings import Settings
from worker.backends.base import ModelFacts, StateBackend
from worker.cache_figures import CacheFigures
from worker.pace import Pace
from worker.prefix_cache import PrefixCache
from worker.reuse import Rules
from worker.snapshots.claims import Claims
from worker.snapshots.fingerprint import fingerprint
from worker.snapshots.limits import max_snapshot_bytes
from worker.snapshots.shelf import Shelf
from worker.snapshots.store import Store
from worker.snapshots.writer import Writer
from worker.weights import HASHES_FOLDER

log = logging.getLogger(__name__)

#: Copies that wait for the writer's thread, together.
_MAX_BUFFERED_BYTES = 256 * 2**20
SNAPSHOTS_FOLDER = "snapshots"
CLAIMS_FOLDER = "claims"


def open_shelf(settings: Settings, model_path: Path, facts: ModelFacts) -> Shelf | None:
    """None where nothing is to be kept, or cannot be: a service without a cache is better than none."""
    if not settings.prefix_cache or not facts.can_restore:
        return None
    folder = settings.host_dir
    try:
        key = fingerprint(
            {
                "model": content_hash(model_path, folder / HASHES_FOLDER),
                "prefill_grid": settings.prefill_grid,
                **facts.state_key,
            }
        )
        store = Store(
            folder / SNAPSHOTS_FOLDER,
            fingerprint=key,
            max_bytes=max_snapshot_bytes(settings.cache_max_bytes, folder),
            ttl_s=settings.cache_ttl_s,
        )
        store.clean()
        claims = Claims(folder / CLAIMS_FOLDER, fingerprint=key)
        return Shelf(store, claims, Writer(store, _MAX_BUFFERED_BYTES))
    except OSError as error:
        log.warning("no snapshots: %s cannot be used for them: %s", folder, error)
        return None


def make_cache(
    settings: Settings,
    backend: StateBackend,
    pace: Pace,
    figures: CacheFigures,
    shelf: Shelf | None,
) -> PrefixCache | None:
    if not settings.prefix_cache or not backend.facts.can_restore:
        return None
    rules = Rules(
        window_tokens=backend.facts.window_tokens,
        grid_tokens=settings.prefill_grid,
        min_tokens=settings.cache_min_tokens,
    )
    return PrefixCache(
        backend,
        rules,
        pace,
        figures,
        shelf=shelf,
        sharing=settings.cache_sharing,
        checkpoint_s=settings.checkpoint_s,
    )
