"""Fetches a model from the Hugging Face Hub through its own client: it resumes, knows tokens and mirrors, and
keeps what it fetched in its own cache (HF_HOME), where HF_HUB_OFFLINE=1 finds it."""

import hashlib
import os
import re
import shutil
from pathlib import Path

from cli.partial_file import check_disk, ended_by_sigterm, partial_file
from cli.sources import HubFile
from shared.errors import ModelUnusable, SetupError
from shared.gguf_header import read_facts


def fetch_hub(source: HubFile, model_dir: Path) -> Path:
    """A hard link into the Hub's cache where that is on the same disk, else a copy. Raises ``SetupError``
    and ``ModelUnusable``."""
    target = model_dir / source.name
    with ended_by_sigterm():
        cached = _download(source)
        _check(cached, source)
        try:
            _put(cached, target)
        except OSError as error:
            raise SetupError(f"{target} cannot be written: {error.strerror or error}") from None
    return target


def _download(source: HubFile) -> Path:
    # Takes half a second to import.
    import httpx
    from huggingface_hub import errors, hf_hub_download

    where = f"hf:{source.repo_id}/{source.path}"
    try:
        return Path(hf_hub_download(source.repo_id, source.path)).resolve()
    except errors.HFValidationError as error:
        raise SetupError(f"{where} is no name of the Hub: {error}") from None
    except errors.GatedRepoError:
        raise SetupError(
            f"{where}: its owner asks you to accept a licence on the Hub first; then set HF_TOKEN"
        ) from None
    except errors.LocalEntryNotFoundError:
        raise SetupError(
            f"{where} is not in the Hub's cache, and the Hub cannot be reached (no network, or "
            "HF_HUB_OFFLINE is set)"
        ) from None
    except errors.EntryNotFoundError:
        raise SetupError(f"{where}: the repository has no such file") from None
    except errors.RepositoryNotFoundError:
        raise SetupError(
            f"{where}: there is no such repository, or it is private: set HF_TOKEN then"
        ) from None
    except (errors.HfHubHTTPError, httpx.HTTPError, errors.OfflineModeIsEnabled) as error:
        raise SetupError(f"{where} could not be fetched: {error}") from None
    except OSError as error:
        raise SetupError(f"{where} could not be stored in the Hub's cache: {error}") from None


def _check(cached: Path, source: HubFile) -> None:
    # Large files are named in that cache by their SHA-256; the client itself compares sizes only.
    if re.fullmatch(r"[0-9a-f]{64}", cached.name):
        with cached.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != cached.name:
            raise ModelUnusable(
                f"{cached} is damaged: its SHA-256 is {found}; remove it and try again"
            )
    try:
        read_facts(cached)
    except ModelUnusable as error:
        raise ModelUnusable(f"{source.path} of {source.repo_id} cannot be used: {error}") from None


def _put(cached: Path, target: Path) -> None:
    with partial_file(target) as partial:
        if partial is None:
            return
        try:
            os.link(cached, target)
            return
        except FileExistsError:
            raise
        except OSError:  # another disk, or one without links
            size_bytes = cached.stat().st_size
        check_disk(size_bytes, shutil.disk_usage(target.parent).free, target.parent)
        shutil.copyfile(cached, partial.path)
        partial.keep()
