"""What the pods of the Kubernetes manifests are given and allowed, and how they are watched and stopped."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from api.app import create_app
from api.server import GRACE_S
from shared.connection import COMMAND_TIMEOUT_S
from shared.models import KNOWN_MODELS
from shared.settings import Settings, load_settings
from tests.unit.deploy.manifests import (
    FOLDER,
    containers,
    containers_of,
    environment_of,
    labels_of,
    main_container_of,
    object_of,
    pod_of,
    walk,
    workloads,
)

UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
#: `mini-vllm model info smollm2`, and what llama.cpp adds to each slot.
KV_BYTES_PER_TOKEN, PADDING_TOKENS = 23_040, 256


def to_bytes(amount: str) -> int:
    return int(amount[:-2]) * UNITS[amount[-2:]]


def settings_of(workload: str) -> Settings:
    values = environment_of(main_container_of(workload))
    return load_settings(
        **{
            name.removeprefix("MINI_VLLM_").lower(): value
            for name, value in values.items()
            if name.startswith("MINI_VLLM_")
        }
    )


def test_every_container_of_a_worker_gets_cores_of_its_own_from_the_kubelet() -> None:
    amounts = [container["resources"] for container in containers_of("worker")]
    assert len(amounts) == 3
    for amount in amounts:
        assert amount["requests"] == amount["limits"]
        assert amount["limits"].keys() == {"cpu", "memory"}
        assert int(amount["limits"]["cpu"]) >= 1
    # The largest init container counts beside the sum of the others, so equal ones are free.
    assert all(amount == amounts[0] for amount in amounts)


def test_a_worker_has_a_thread_for_each_of_its_cores() -> None:
    container = main_container_of("worker")
    (threads,) = [e for e in container["env"] if e["name"] == "MINI_VLLM_THREADS"]
    source = {"containerName": container["name"], "resource": "limits.cpu"}
    assert threads["valueFrom"] == {"resourceFieldRef": source}


def test_a_worker_has_the_memory_that_its_slots_and_context_take() -> None:
    settings = settings_of("worker")
    cells = settings.slots * (settings.context_tokens + PADDING_TOKENS)
    needed_bytes = cells * KV_BYTES_PER_TOKEN + KNOWN_MODELS[settings.model].size_bytes
    limit_bytes = to_bytes(main_container_of("worker")["resources"]["limits"]["memory"])
    assert 1.5 * needed_bytes < limit_bytes


def test_redis_may_use_half_of_its_memory() -> None:
    (line,) = [
        line
        for line in (FOLDER / "redis/redis.conf").read_text().splitlines()
        if line.startswith("maxmemory ")
    ]
    assert line == "maxmemory 1gb"
    limit = main_container_of("redis")["resources"]["limits"]["memory"]
    assert 2 * UNITS["Gi"] <= to_bytes(limit)


def test_redis_has_its_files_on_volumes() -> None:
    container, (renders, *_) = main_container_of("redis"), containers_of("redis")
    flags = container["command"][2:]
    places = dict(zip(flags[::2], flags[1::2], strict=True))
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    claims = workloads()["redis"]["spec"]["volumeClaimTemplates"]
    assert [claim["metadata"]["name"] for claim in claims] == [mounts[places["--dir"]]]
    assert environment_of(renders)["ACL"] == places["--aclfile"]
    assert mounts[str(Path(places["--aclfile"]).parent)] == "acl"


def test_no_container_may_do_more_than_it_must() -> None:
    allowed_as_root = []
    for workload, container in containers():
        context = pod_of(workload)["securityContext"] | container["securityContext"]
        capabilities = context.pop("capabilities")
        assert capabilities["drop"] == ["ALL"]
        assert not context.pop("allowPrivilegeEscalation")
        assert context.pop("readOnlyRootFilesystem")
        assert context.pop("seccompProfile") == {"type": "RuntimeDefault"}
        if not context.pop("runAsNonRoot"):
            allowed_as_root.append((workload, container["name"], capabilities.get("add")))
        else:
            assert context.pop("runAsUser") >= 999
            assert "add" not in capabilities
        assert context.keys() <= {"runAsUser", "runAsGroup", "fsGroup"}
    assert allowed_as_root == [("worker", "host-dir", ["CHOWN"])]
    assert [pod_of(name)["automountServiceAccountToken"] for name in workloads()] == [False] * 3
    assert not [n for name in workloads() for n in walk(pod_of(name)) if n.get("hostNetwork")]


def test_the_probes_ask_routes_and_modules_that_exist() -> None:
    paths = set(create_app(load_settings()).openapi()["paths"])
    gateway = main_container_of("gateway")
    probes = [gateway[name] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    asked = [probe["httpGet"]["path"] for probe in probes]
    # A gateway that is not ready stays in the Service: it takes jobs, and says what is missing.
    assert asked == ["/health"] * 3
    assert set(asked) <= paths
    commands: list[list[str]] = []
    for name in ("gateway", "worker"):
        for node in walk(main_container_of(name)):
            commands += [node[key] for key in ("args", "command") if key in node]
    modules = {command[3] for command in commands if command[:3] == ["python", "-P", "-m"]}
    assert modules == {"api", "worker", "cli.health"}
    assert [module for module in sorted(modules) if find_spec(module) is None] == []


def test_a_worker_has_minutes_to_start() -> None:
    probe = main_container_of("worker")["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 300
    assert probe["exec"] == main_container_of("worker")["livenessProbe"]["exec"]


@pytest.mark.parametrize("workload", ["gateway", "worker"])
def test_a_pod_is_not_killed_before_it_has_drained(workload: str) -> None:
    settings = settings_of(workload)
    container, grace_s = main_container_of(workload), 0.0
    if workload == "gateway":
        command = container["lifecycle"]["preStop"]["exec"]["command"]
        assert command[0] == "sleep"
        grace_s = int(command[1]) + settings.stream_grace_s + GRACE_S
    else:
        grace_s = settings.drain_timeout_s + 2 * COMMAND_TIMEOUT_S
    assert pod_of(workload)["terminationGracePeriodSeconds"] > grace_s


def test_the_workers_of_a_node_share_one_host_directory() -> None:
    settings = settings_of("worker")
    (volume,) = [volume for volume in pod_of("worker")["volumes"] if "hostPath" in volume]
    assert volume["hostPath"] == {"path": str(settings.host_dir), "type": "DirectoryOrCreate"}
    mounts = {mount["name"]: mount for mount in main_container_of("worker")["volumeMounts"]}
    assert mounts[volume["name"]] == {"name": volume["name"], "mountPath": str(settings.host_dir)}
    assert mounts["models"]["mountPath"] == str(settings.model_dir)
    makes_it, pulls, _ = containers_of("worker")
    context = pod_of("worker")["securityContext"]
    owner = f"{context['runAsUser']}:{context['runAsGroup']}"
    assert makes_it["args"] == ["chown", owner, str(settings.host_dir)]
    assert makes_it["volumeMounts"] == [mounts[volume["name"]]]
    assert pulls["args"] == ["mini-vllm", "model", "prepare"]
    prepared, run = environment_of(pulls), environment_of(main_container_of("worker"))
    names = ("MODEL", "MODEL_DIR", "HOST_DIR", "WEIGHT_FORMAT", "TUNE")
    for name in names:
        assert prepared[f"MINI_VLLM_{name}"] == run[f"MINI_VLLM_{name}"], name


def test_all_pods_run_one_copy_of_the_weights() -> None:
    """Each would measure on its own node, and choose for itself."""
    settings = settings_of("worker")
    assert not settings.tune
    assert "weight_format" in settings.model_fields_set


def test_all_gateways_keep_their_files_on_one_volume_with_room_for_them() -> None:
    """A batch reads its file wherever it runs, and goes on at another gateway."""
    settings = settings_of("gateway")
    mounts = {m["mountPath"]: m["name"] for m in main_container_of("gateway")["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod_of("gateway")["volumes"]}
    claim = volumes[mounts[str(settings.files_folder)]]["persistentVolumeClaim"]
    assert not claim.get("readOnly")
    spec = object_of("PersistentVolumeClaim", claim["claimName"])["spec"]
    assert workloads()["gateway"]["spec"]["replicas"] > 1
    assert spec["accessModes"] == ["ReadWriteMany"]
    assert to_bytes(spec["resources"]["requests"]["storage"]) > settings.file_store_max_bytes
    assert "fsGroup" in pod_of("gateway")["securityContext"], "it is no root that writes there"


def test_every_volume_is_mounted_and_every_mount_has_a_volume() -> None:
    for name, workload in workloads().items():
        volumes = {volume["name"] for volume in pod_of(name).get("volumes", [])}
        claims = workload["spec"].get("volumeClaimTemplates", [])
        volumes |= {claim["metadata"]["name"] for claim in claims}
        mounts = {m["name"] for c in containers_of(name) for m in c.get("volumeMounts", [])}
        assert mounts == volumes
        if "mini-vllm" in [container["image"] for container in containers_of(name)]:
            paths = [mount["mountPath"] for mount in main_container_of(name)["volumeMounts"]]
            assert "/tmp" in paths


def test_a_disruption_leaves_a_gateway_and_a_rollout_needs_no_core_more() -> None:
    replicas = workloads()["gateway"]["spec"]["replicas"]
    assert object_of("PodDisruptionBudget", "gateway")["spec"]["minAvailable"] < replicas
    assert workloads()["gateway"]["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert workloads()["worker"]["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 0
    assert labels_of("gateway") != labels_of("worker")
