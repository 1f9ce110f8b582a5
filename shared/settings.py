"""Every setting, from ``MINI_VLLM_*`` in the environment; built once in a ``__main__`` and passed on.

A bad value stops the process and names key and value. Command line flags take their defaults here.
"""

import os
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from shared.errors import SetupError
from shared.logs import Level, LogFormat
from shared.protocol import (
    MESSAGES_CEILING,
    PROMPT_CHARS_CEILING,
    STOP_CHARS_CEILING,
    STOPS_CEILING,
)
from shared.redis_url import bad_url, with_password
from shared.webhooks.signing import secret_bytes
from shared.weight_formats import AS_IS, WEIGHT_FORMATS

#: Per sequence, unless asked otherwise: a long context costs memory whether it is used or not.
MAX_CONTEXT_TOKENS = 4096


WeightsSharing = Literal["auto", "shared", "private"]


def _cache_dir() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mini-vllm"


def _data_dir() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "mini-vllm"


def _host_dir() -> Path:
    root = Path("/dev/shm") if os.path.isdir("/dev/shm") else Path("/tmp")
    return root / f"mini-vllm-{os.getuid()}"


class Basics(BaseSettings):
    """What a process needs to say in Redis that its other settings are bad."""

    model_config = SettingsConfigDict(
        env_prefix="MINI_VLLM_", env_ignore_empty=True, frozen=True, extra="ignore"
    )

    model: str = Field(
        "smollm2", min_length=1, description="a known name or the path of a GGUF file"
    )
    redis_url: str = Field("redis://127.0.0.1:6379/0", description="redis://, rediss:// or unix://")
    redis_password: SecretStr = Field(
        SecretStr(""), description="where the URL has none; any characters"
    )


class Settings(Basics):
    host: str = "127.0.0.1"
    publish: str = Field(
        "",
        description="the address under which others reach the gateway, where that is not `host` "
        "(a published port of a container)",
    )
    port: int = Field(8000, ge=0, le=65535, description="0 takes a free one")
    data_dir: Path = Field(default_factory=_data_dir, description="what `up` keeps: jobs, logs")
    host_dir: Path = Field(
        default_factory=_host_dir, description="core leases and snapshots of this host"
    )
    model_dir: Path = Field(default_factory=lambda: _cache_dir() / "models")
    log_level: Level = "info"
    log_format: LogFormat = Field("text", description="text: for people; json: an object a line")

    result_ttl_s: int = Field(86_400, ge=1, description="how long a finished job can be read")
    max_body_bytes: int = Field(
        1_048_576,
        ge=1024,
        le=1_073_741_824,
        description="of POST /generate and of completions",
    )
    max_inflight_body_bytes: int = Field(
        268_435_456,
        ge=1024,
        description="bodies that a gateway reads or handles at once, together; more get 503",
    )
    body_timeout_s: float = Field(
        30, gt=0, le=3600, description="longest pause between two pieces of a body, else 408"
    )
    body_deadline_s: float = Field(
        300, gt=0, le=86_400, description="in which a whole body must come, else 408"
    )
    max_header_bytes: int = Field(
        32_768, ge=1024, le=1_048_576, description="request line and headers together"
    )
    header_timeout_s: float = Field(
        10, gt=0, le=3600, description="a connection whose headers take longer is closed"
    )
    max_prompt_chars: int = Field(
        200_000,
        ge=1,
        le=PROMPT_CHARS_CEILING,
        description="of `prompt`, or of the contents of all messages together",
    )
    max_messages: int = Field(1024, ge=1, le=MESSAGES_CEILING, description="of one request")
    max_stops: int = Field(16, ge=0, le=STOPS_CEILING, description="stop texts of one request")
    max_stop_chars: int = Field(256, ge=1, le=STOP_CHARS_CEILING, description="of one stop text")
    max_wait_s: float = Field(60, gt=0, le=3600, description="longest ?wait_s= of GET /jobs/<id>")
    sse_keepalive_s: float = Field(
        15, gt=0, description="comment on a stream that is silent so long"
    )
    header_wait_s: float = Field(
        15,
        gt=0,
        le=600,
        description="how long a stream of /v1 waits for its job to begin, to say with its status that "
        "it cannot",
    )
    stream_grace_s: float = Field(
        30, ge=0, description="how long a stopping gateway lets streams and waits go on"
    )

    weight_format: str = Field(
        AS_IS,
        description="which copy of the model's weights workers load, like bf16 (`mini-vllm model convert` "
        "makes it); as-is: the file as it came",
    )
    weights_sharing: WeightsSharing = Field(
        "auto",
        description="between workers of a host. auto: the mapped file, and a private copy of formats that "
        "llama.cpp repacks to be faster (q4_0, iq4_nl); shared: the file only; private: a copy each",
    )
    tune: bool = Field(
        True,
        description="use what `mini-vllm tune` found for this model and machine; `up` measures for up to "
        "10 s where there is nothing",
    )
    tune_concurrency: int = Field(
        16,
        ge=1,
        le=1024,
        description="clients at once that this service is meant for: of several records the nearest is used",
    )
    threads: int = Field(0, ge=0, le=512, description="per worker; 0 takes a share of the cores")
    workers: int = Field(
        0, ge=0, le=4096, description="meant to share this host's cores; 0: not known"
    )
    slots: int = Field(8, ge=1, le=128, description="sequences that a worker runs at once")
    context_tokens: int = Field(
        0, ge=0, le=1_048_576, description="per sequence; 0: the model's, at most 4096"
    )
    chat_template_file: Path | None = Field(
        None, description="a Jinja template in place of the model's own"
    )
    prefill_chunk_tokens: int = Field(56, ge=2, le=56, description="rows of one prompt chunk")
    prefill_stall_ms: float = Field(
        100,
        gt=0,
        le=60_000,
        description="how long prompts may hold up running streams in a step; 16 tokens are computed "
        "anyway",
    )
    prefill_grid: int = Field(
        0,
        description="0: chunks that may be cut anywhere; 256: fixed chunks of 256, faster on long prompts, "
        "whose results are reused up to a border of the grid only",
    )
    prefix_cache: bool = Field(
        True, description="keep what was computed of prompts for others that begin alike"
    )
    cache_max_bytes: int = Field(
        0, ge=0, description="of all snapshots in host_dir; 0: a quarter of the free memory"
    )
    cache_ttl_s: int = Field(3600, ge=1, description="snapshots unused for so long are removed")
    cache_sharing: Literal["key", "all"] = Field(
        "key", description="who may reuse a prompt's snapshot: jobs of the same API key, or all"
    )
    cache_min_tokens: int = Field(
        64, ge=16, description="what is not worth a snapshot: fewer tokens to save than that"
    )
    checkpoint_s: float = Field(
        5, gt=0, description="a running job is saved whenever so much work would be lost"
    )
    heartbeat_s: float = Field(1.0, gt=0, le=60)
    heartbeat_ttl_s: float = Field(4.0, gt=0, le=600)
    stall_limit_s: float = Field(60, gt=0, description="a step that takes longer ends the worker")
    drain_timeout_s: float = Field(
        30, ge=0, description="how long SIGTERM lets running jobs finish"
    )
    max_deaths: int = Field(
        3, ge=1, description="workers that may die of one job before it is run alone"
    )
    priority_patience: int = Field(
        16, ge=1, description="jobs of higher priority that may overtake a waiting one"
    )

    api_keys: SecretStr = Field(
        SecretStr(""), description="separated by commas; none: no key needed"
    )
    api_keys_file: Path | None = Field(None, description="one key or sha256:<hex> of it a line")
    admin_keys: SecretStr = Field(
        SecretStr(""), description="see and cancel all jobs, read /metrics"
    )
    admin_keys_file: Path | None = None
    metrics_key: SecretStr = Field(SecretStr(""), description="reads /metrics and nothing else")
    insecure: bool = Field(False, description="listen beyond loopback without keys")
    max_requests_per_minute: int = Field(0, ge=0, le=100_000, description="of one key; 0: any")
    max_queued_jobs_per_key: int = Field(0, ge=0, description="0: any")

    webhook_secret: SecretStr = Field(
        SecretStr(""),
        description="signs webhooks: whsec_<base64>, or any text of 16 bytes; none: no webhooks",
    )
    webhook_allow_private: bool = Field(
        False, description="webhooks may go to loopback and private addresses"
    )
    webhook_max_attempts: int = Field(8, ge=1, le=32, description="tries of one delivery")
    webhook_retry_s: float = Field(
        5, gt=0, le=3600, description="until the second try; four times as long until each other"
    )
    webhook_timeout_s: float = Field(10, gt=0, le=60, description="of one try, look-up included")

    max_queued_jobs: int = Field(10_000, ge=1)
    max_queued_chars: int = Field(100_000_000, ge=1, description="of all prompts that wait")
    worker_grace_s: float = Field(
        60, gt=0, description="how long jobs are taken while no worker is there"
    )

    file_dir: Path | None = Field(
        None,
        description="files of /v1/files; default: `files` in data_dir. Gateways of one service share it",
    )
    file_store_max_bytes: int = Field(2_147_483_648, ge=1_048_576, description="of all files")
    max_file_bytes: int = Field(209_715_200, ge=1024, description="of one uploaded file")
    file_ttl_s: int = Field(
        2_592_000, ge=3600, description="files without expiry of their own, and ended batches"
    )
    file_deadline_s: float = Field(3600, gt=0, description="in which an upload must come, else 408")
    batch_max_lines: int = Field(50_000, ge=1, description="requests of one batch")
    batch_max_open: int = Field(1000, ge=1, description="batches that have not ended")
    batch_max_running: int = Field(4, ge=1, description="batches that a gateway runs at once")
    batch_lease_s: float = Field(
        15, ge=1, le=600, description="after it another gateway takes a batch over"
    )

    @property
    def files_folder(self) -> Path:
        return self.file_dir or self.data_dir / "files"

    @field_validator("weight_format")
    @classmethod
    def _is_format(cls, value: str) -> str:
        if value.lower() not in (AS_IS, *WEIGHT_FORMATS):
            raise ValueError(f"must be {AS_IS} or one of {', '.join(WEIGHT_FORMATS)}")
        return value.lower()

    @field_validator("prefill_grid")
    @classmethod
    def _is_grid(cls, value: int) -> int:
        if value not in (0, 256):
            raise ValueError("must be 0 or 256")
        return value

    @field_validator("webhook_secret")
    @classmethod
    def _is_secret(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value():
            secret_bytes(value.get_secret_value())
        return value

    @field_validator("max_inflight_body_bytes")
    @classmethod
    def _takes_one_body(cls, value: int, info: ValidationInfo) -> int:
        """Else the largest body would be told for ever to come again."""
        max_body_bytes = info.data.get("max_body_bytes", 0)
        if value < max_body_bytes:
            raise ValueError(f"must be at least MINI_VLLM_MAX_BODY_BYTES ({max_body_bytes})")
        return value


_Kind = TypeVar("_Kind", bound=Basics)


def load_settings(**overrides: object) -> Settings:
    """With the Redis password in its URL. Raises ``SetupError`` that names the key, its value and what
    is wrong with it."""
    return _load(Settings, overrides)


def load_basics(**overrides: object) -> Basics:
    """Like ``load_settings``, whatever the other settings are."""
    return _load(Basics, overrides)


def _shown(kind: type[Basics], error: Any) -> str:
    """The bad value, unless it is a secret."""
    field = kind.model_fields.get(str(error["loc"][0])) if error["loc"] else None
    return "***" if field and field.annotation is SecretStr else repr(error["input"])


def _load(kind: type[_Kind], overrides: dict[str, object]) -> _Kind:
    try:
        settings = kind(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        lines = [
            f"MINI_VLLM_{str(e['loc'][0]).upper() if e['loc'] else ''}={_shown(kind, e)}: "
            + e["msg"].removeprefix("Value error, ")
            for e in error.errors()
        ]
        raise SetupError("bad setting: " + "; ".join(lines)) from None
    try:
        url = with_password(settings.redis_url, settings.redis_password.get_secret_value())
    except ValueError as error:
        raise bad_url(settings.redis_url, error) from None
    return settings.model_copy(update={"redis_url": url})
