import time
from pathlib import Path

from shared.connection import connect
from shared.protocol import WorkerReport, WorkerState
from shared.recovery import Sweeper
from tests.servers import Valkey, wait_for
from worker.heart import Heart, Pulse
from worker.presence import Presence


def test_a_worker_gives_signs_of_life_while_redis_is_away(tmp_path: Path, valkey: Valkey) -> None:
    presence = Presence(tmp_path, "w.1")
    report = WorkerReport(
        name="w", incarnation="w.1", pid=1, host="h", model="m", state=WorkerState.WAITING
    )
    heart = Heart(
        connect(valkey.url),
        report=lambda: report,
        pulse=Pulse(60),
        interval_s=0.02,
        ttl_s=60,
        sweeper=Sweeper(heartbeat_ttl_s=60, max_deaths=3, result_ttl_s=60),
    )
    heart.sign = presence.touch
    file = tmp_path / "workers" / "w.1"

    def has_new_sign() -> bool:
        return file.stat().st_mtime > before_s

    heart.register()
    try:
        before_s = time.time()
        wait_for(has_new_sign, "a sign while Redis answers")
        valkey.kill()
        before_s = time.time()
        wait_for(has_new_sign, "a sign while Redis is away")
    finally:
        heart.stop()
        presence.close()
