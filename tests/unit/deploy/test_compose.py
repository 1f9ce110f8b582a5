"""docker-compose.yml, Dockerfile and .env.example are of one mind with the settings and with each other."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.settings import Settings

ROOT = Path(__file__).parents[3]
OURS = ("gateway", "worker")
MONITORING = ("prometheus", "grafana")
#: Not in the environment of a service.
ELSEWHERE = {
    "data_dir": "of `up` alone",
    "file_dir": "the image",
    "host": "the image",
    "host_dir": "the image",
    "model_dir": "the image",
}
GATEWAY_ALONE = {
    "api_keys",
    "api_keys_file",
    "admin_keys",
    "admin_keys_file",
    "metrics_key",
    "insecure",
    "publish",
    "webhook_secret",
}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    text = (ROOT / "docker-compose.yml").read_text()
    return dict(yaml.safe_load(text))


def _settings_of(service: dict[str, Any]) -> set[str]:
    names = {name for name in service["environment"] if name.startswith("MINI_VLLM_")}
    return {name.removeprefix("MINI_VLLM_").lower() for name in names}


def test_every_setting_can_be_given_and_none_is_misspelt(project: dict[str, Any]) -> None:
    given = set.union(*(_settings_of(project["services"][name]) for name in OURS))
    assert given == set(Settings.model_fields) - set(ELSEWHERE)


def test_workers_are_told_no_secret_of_the_gateway(project: dict[str, Any]) -> None:
    assert not _settings_of(project["services"]["worker"]) & GATEWAY_ALONE


def test_what_is_measured_before_the_workers_holds_for_them(project: dict[str, Any]) -> None:
    """Alike in all that a record is of: else they would not find it, or run what was not measured."""
    model, worker = project["services"]["model"], project["services"]["worker"]
    assert model["command"] == ["mini-vllm", "model", "prepare"]
    assert model["cpuset"] == worker["cpuset"]
    assert model["environment"].items() <= worker["environment"].items()
    assert _settings_of(model) == {
        *("model", "workers", "threads", "slots", "context_tokens", "prefill_stall_ms"),
        *("tune", "tune_concurrency", "weight_format", "weights_sharing"),
    }
    assert worker["depends_on"]["model"] == {"condition": "service_completed_successfully"}


def test_what_measures_sees_the_cores_that_are_taken_and_keeps_its_record(
    project: dict[str, Any],
) -> None:
    model, worker = project["services"]["model"], project["services"]["worker"]
    assert model["volumes"] == ["${MODELS:-models}:/models", "host:/run/mini-vllm:ro"]
    assert set(worker["volumes"]) == {"${MODELS:-models}:/models:ro", "host:/run/mini-vllm"}


def test_what_settles_it_elsewhere_is_in_the_image() -> None:
    image = (ROOT / "Dockerfile").read_text()
    for name, where in ELSEWHERE.items():
        assert (f"MINI_VLLM_{name.upper()}=" in image) == (where == "the image"), name


def test_every_service_is_as_small_as_can_be(project: dict[str, Any]) -> None:
    for name, service in project["services"].items():
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "container_name" not in service, name
        assert ("ports" in service) == (name in ("gateway", *MONITORING)), name
    for name in (*OURS, "redis", *MONITORING):
        assert "mem_limit" in project["services"][name], name


def test_the_gateway_is_published_where_it_is_told_that_it_is(project: dict[str, Any]) -> None:
    gateway = project["services"]["gateway"]
    place = gateway["environment"]["MINI_VLLM_PUBLISH"]
    assert place == "${MINI_VLLM_PUBLISH:-127.0.0.1}"
    (port,) = gateway["ports"]
    assert port == f"{place}:${{MINI_VLLM_PORT:-8000}}:{gateway['environment']['MINI_VLLM_PORT']}"


def test_what_monitors_is_asked_for_and_for_this_host_alone(project: dict[str, Any]) -> None:
    by_profile = {name: service.get("profiles") for name, service in project["services"].items()}
    assert {name for name, profiles in by_profile.items() if profiles} == set(MONITORING)
    for name in MONITORING:
        service = project["services"][name]
        assert service["profiles"] == ["monitoring"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"]), name
        assert re.fullmatch(r"[\w/]+:v?\d+\.\d+\.\d+", service["image"]), name


def test_grafana_lets_nobody_in_without_the_password(project: dict[str, Any]) -> None:
    environment = project["services"]["grafana"]["environment"]
    assert environment["GF_SECURITY_ADMIN_PASSWORD"] == "${GRAFANA_PASSWORD:-}"
    assert environment["GF_AUTH_ANONYMOUS_ENABLED"] == "false"
    assert environment["GF_USERS_ALLOW_SIGN_UP"] == "false"


@pytest.mark.parametrize(
    ("service", "setting"), [("worker", "drain_timeout_s"), ("gateway", "stream_grace_s")]
)
def test_a_stop_may_take_longer_than_what_it_waits_for(
    project: dict[str, Any], service: str, setting: str
) -> None:
    text = project["services"][service]["stop_grace_period"]
    grace = re.fullmatch(r"\$\{\w+:-(\d+)s\}", text)
    assert grace
    assert int(grace[1]) >= Settings.model_fields[setting].default + 10


def test_the_example_names_only_what_is_read() -> None:
    known = {f"MINI_VLLM_{name.upper()}" for name in Settings.model_fields}
    files = ("docker-compose.yml", "deploy/compose/shared-redis.yml")
    text = "\n".join((ROOT / name).read_text() for name in files)
    code = re.sub(r"(?m)^\s*#.*$", "", text)
    read = set(re.findall(r"\$\{(\w+)", code))
    lines = (ROOT / ".env.example").read_text().splitlines()
    told = {match[1] for line in lines if (match := re.match(r"#?([A-Z_]+)=", line))}
    assert told - known <= read | {"COMPOSE_FILE", "COMPOSE_PROFILES"}  # Compose itself reads those
    assert {name for name in read if not name.startswith("MINI_VLLM_")} <= told


def test_every_line_of_the_example_is_a_comment() -> None:
    lines = (ROOT / ".env.example").read_text().splitlines()
    assert not [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("name", ["docker-compose.yml", "deploy/compose/shared-redis.yml"])
def test_a_client_that_is_here_reads_it(name: str) -> None:
    files = ["-f", "docker-compose.yml", *(["-f", name] if "shared" in name else [])]
    environment = {"PATH": os.environ["PATH"], "REDIS_PUBLISH": "127.0.0.1", "REDIS_PASSWORD": "x"}
    for client in _clients():
        done = subprocess.run(
            [*client, *files, "config", "--quiet"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    yaml.safe_load((ROOT / name).read_text())


def _clients() -> list[list[str]]:
    found = [["docker-compose"]] if shutil.which("docker-compose") else []
    if shutil.which("docker"):
        plugin = subprocess.run(["docker", "compose", "version"], capture_output=True)
        found += [["docker", "compose"]] if plugin.returncode == 0 else []
    return found


def test_an_unknown_target_is_refused_by_name() -> None:
    done = subprocess.run(
        [ROOT / "deploy/docker/build-llama.sh", "none.txt"],
        env={"PATH": os.environ["PATH"], "LLAMA_TARGET": "x86-64-v9"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (
        2,
        "LLAMA_TARGET=x86-64-v9: must be native, x86-64-v3 or x86-64-v4\n",
    )


def test_the_lock_is_split_into_the_compiled_package_and_the_rest(tmp_path: Path) -> None:
    native, rest = tmp_path / "native", tmp_path / "rest"
    script = ROOT / "deploy/docker/split_lock.py"
    subprocess.run(["python3", script, ROOT / "requirements.lock", native, rest], check=True)
    assert re.match(r"llama-cpp-python==\S+ \\\n    --hash=sha256:\w+\n\Z", native.read_text())
    whole = (ROOT / "requirements.lock").read_text()
    assert sorted((native.read_text() + rest.read_text()).splitlines()) == sorted(
        whole.splitlines()
    )
