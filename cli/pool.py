"""What `up` runs: Valkey (unless a Redis is given), workers and the gateway, as supervised children."""

import os
import signal
import sys
from uuid import uuid4

from redis import Redis
from redis.exceptions import RedisError

from cli.child import Child
from cli.embedded import EmbeddedValkey
from cli.layout import Layout
from cli.leftovers import dead_incarnations
from cli.policy import Patience
from cli.registrar import Registrar
from cli.watch import Watch, watch_for_stop
from shared.connection import connect
from shared.errors import SetupError
from shared.recovery import Sweeper
from shared.settings import Settings

# -P: a folder `api` or `worker` where the user happens to stand is not ours.
_PYTHON = [sys.executable, "-P", "-m"]

#: No worker has a use for them.
_GATEWAY_SECRETS = {"MINI_VLLM_API_KEYS", "MINI_VLLM_ADMIN_KEYS", "MINI_VLLM_METRICS_KEY"}


class Pool:
    """``settings.redis_url`` is where all of them meet."""

    def __init__(self, settings: Settings, layout: Layout, valkey: EmbeddedValkey | None) -> None:
        self._settings = settings
        self._port = settings.port
        self._environment = os.environ | {
            "MINI_VLLM_REDIS_URL": settings.redis_url,
            "MINI_VLLM_REDIS_PASSWORD": "",  # it is in the URL
            "MINI_VLLM_MODEL": settings.model,
            "MINI_VLLM_WEIGHT_FORMAT": settings.weight_format,
            "MINI_VLLM_SLOTS": str(settings.slots),
            "MINI_VLLM_PREFILL_CHUNK_TOKENS": str(settings.prefill_chunk_tokens),
            "MINI_VLLM_TUNE": "0",  # a record, if any, is in the settings already
            "MINI_VLLM_DATA_DIR": str(settings.data_dir),
            "MINI_VLLM_LOG_FORMAT": settings.log_format,
            "MINI_VLLM_LOG_LEVEL": settings.log_level,
            "MINI_VLLM_INSECURE": str(int(settings.insecure)),
        }
        self._sweeper = Sweeper.from_settings(settings)
        self.registrar = Registrar(settings.redis_url, self._bury)
        #: Whether a death counts against the jobs that the worker held: not what an operator does.
        self.deaths_count = True
        limit_s = settings.heartbeat_ttl_s
        self.valkey = _valkey_child(valkey, limit_s) if valkey else None
        self.workers = [self._make_worker(i, layout.threads) for i in range(layout.workers)]
        self.gateway = Child(
            "gateway",
            self._gateway_command,
            self._environment,
            watches=[watch_for_stop(limit_s)],
            hurries=True,
        )

    @property
    def url(self) -> str:
        """Once the gateway has announced itself; a restarted one takes the same port."""
        host = self._settings.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self._port}"

    @property
    def is_ready(self) -> bool:
        """The gateway serves, and every worker is ready or waits for a core."""
        if not self.gateway.announced:
            return False
        self._port = int(self.gateway.announced[0].split()[1])
        return all(worker.announced for worker in self.workers)

    def bury_leftovers(self) -> None:
        """Workers of this host that an earlier `up` left behind when it was killed."""
        client = connect(self._settings.redis_url)
        try:
            for incarnation in dead_incarnations(client):
                self._sweeper.bury(client, incarnation, only_if_lapsed=False, counts=False)
        except RedisError as error:
            raise SetupError(f"Redis refuses us: {error}") from None
        finally:
            client.close()

    def _bury(self, client: Redis, incarnation: str, counts: bool) -> None:
        self._sweeper.bury(client, incarnation, only_if_lapsed=False, counts=counts)

    def _make_worker(self, number: int, threads: int) -> Child:
        name = f"worker-{number}"
        environment = {k: v for k, v in self._environment.items() if k not in _GATEWAY_SECRETS}
        child = Child(name, lambda _fd: [], environment)
        incarnation = ""

        def make_command(ready_fd: int) -> list[str]:
            nonlocal incarnation
            incarnation = f"{name}.{uuid4().hex[:8]}"
            flags = ["--name", name, "--incarnation", incarnation, "--threads", str(threads)]
            return [*_PYTHON, "worker", *flags, "--ready-fd", str(ready_fd)]

        limit_s = self._settings.heartbeat_ttl_s
        left = Watch(
            "was declared dead by others and has not ended",
            lambda _pid: self.registrar.has_left(incarnation),
            Patience(2 * limit_s),  # it exits by itself at its next heartbeat, if it has one
        )
        child.make_command = make_command
        child.on_death = lambda counts: self.registrar.bury(
            incarnation, counts and self.deaths_count
        )
        child.watches = [watch_for_stop(limit_s), left]
        return child

    def _gateway_command(self, ready_fd: int) -> list[str]:
        flags = ["--host", self._settings.host, "--port", str(self._port)]
        return [*_PYTHON, "api", *flags, "--ready-fd", str(ready_fd)]


def _valkey_child(valkey: EmbeddedValkey, stopped_limit_s: float) -> Child:
    # SIGTERM: if the supervisor is killed, Valkey still writes down what it has.
    return Child(
        "valkey",
        lambda _fd: valkey.command(),
        os.environ,
        death_signal=signal.SIGTERM,
        inherits=(valkey.lock_fd,),
        watches=[watch_for_stop(stopped_limit_s)],
    )
