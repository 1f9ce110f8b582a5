"""The Kubernetes manifests fit together: names, keys, labels, ports and settings."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.keyring import Keyring
from shared.errors import SetupError
from shared.exposure import check_exposure
from shared.settings import Settings, load_settings
from tests.unit.deploy.manifests import (
    FOLDER,
    ROOT,
    containers,
    documents,
    environment_of,
    files,
    kustomizations,
    labels_of,
    main_container_of,
    object_of,
    objects,
    objects_of,
    pod_of,
    walk,
    workloads,
)

SETTINGS = {f"MINI_VLLM_{name.upper()}" for name in Settings.model_fields}
NAMESPACE = "mini-vllm"


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(FOLDER)))
def test_every_document_says_what_it_is_and_where_it_belongs(path: Path) -> None:
    found = documents(path)
    assert found
    for document in found:
        assert document["apiVersion"]
        assert document["kind"]
        assert document["metadata"]["name"]
        if document["kind"] not in ("Namespace", "Kustomization"):
            assert document["metadata"]["namespace"] == NAMESPACE


def test_no_two_objects_have_one_name() -> None:
    names = [(o["kind"], o["metadata"]["name"]) for o in objects()]
    assert len(names) == len(set(names))


def test_the_kustomizations_list_every_file_but_the_examples() -> None:
    listed = set()
    for folder, kustomization in kustomizations():
        entries = list(kustomization.get("resources", []))
        for generator in kustomization.get("configMapGenerator", []):
            entries += generator["files"]
        listed |= {(folder / entry).resolve() for entry in entries}
    assert all(path.exists() for path in listed)
    there = {path for path in FOLDER.rglob("*") if path.is_file() and path.suffix != ".md"}
    unlisted = {path.name for path in there - listed}
    assert unlisted == {"kustomization.yaml", "secret.example.yaml", "ingress.example.yaml"}


def test_every_setting_in_them_is_one() -> None:
    assert object_of("ConfigMap", "settings")["data"].keys() <= SETTINGS
    for workload, container in containers():
        names = {variable["name"] for variable in container.get("env", [])}
        ours = {name for name in names if name.startswith("MINI_VLLM_")}
        assert ours <= SETTINGS, (workload, container["name"])


@pytest.mark.parametrize("workload", ["gateway", "worker"])
def test_the_settings_are_accepted(workload: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment_of(main_container_of(workload)).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MINI_VLLM_REDIS_PASSWORD", "a/b")
    settings = load_settings()
    assert settings.model == "smollm2"
    assert settings.redis_url == f"redis://{workload}:a%2Fb@$(REDIS_ADDRESS)/0"


def test_a_gateway_does_not_start_without_keys_nor_with_those_of_the_example() -> None:
    environment = environment_of(main_container_of("gateway"))
    published = {"host": environment["MINI_VLLM_HOST"], "publish": environment["MINI_VLLM_PUBLISH"]}
    with pytest.raises(SetupError, match="no API keys are set"):
        check_exposure(load_settings(**published))
    example = object_of("Secret", "mini-vllm")["stringData"]
    for setting, key in (("api_keys", "api-keys"), ("admin_keys", "admin-keys")):
        with pytest.raises(SetupError, match="64 digits of hex"):
            Keyring.from_settings(load_settings(**{setting: example[key]}))
    with pytest.raises(SetupError, match="base64 after `whsec_`"):
        load_settings(webhook_secret=example["webhook-secret"])
    assert {example[key] for key in example if "password" in key} == {""}


def test_a_gateway_can_be_given_a_webhook_secret_and_does_without() -> None:
    (secret,) = [
        variable["valueFrom"]["secretKeyRef"]
        for variable in main_container_of("gateway")["env"]
        if variable["name"] == "MINI_VLLM_WEBHOOK_SECRET"
    ]
    assert secret == {"name": "mini-vllm", "key": "webhook-secret", "optional": True}
    worker = main_container_of("worker")
    assert "webhook-secret" not in str(worker), "a worker signs nothing"


def references() -> Iterator[tuple[str, str, str]]:
    """Kind, name and key of what is read from a ConfigMap or a Secret; key '*' is all of it."""
    for node in walk(list(objects())):
        if "configMapKeyRef" in node:
            yield "ConfigMap", node["configMapKeyRef"]["name"], node["configMapKeyRef"]["key"]
        if "secretKeyRef" in node:
            yield "Secret", node["secretKeyRef"]["name"], node["secretKeyRef"]["key"]
        if "configMapRef" in node:
            yield "ConfigMap", node["configMapRef"]["name"], "*"
        if "mountPath" not in node and isinstance(node.get("configMap"), dict):
            yield "ConfigMap", node["configMap"]["name"], "*"
        if "mountPath" not in node and isinstance(node.get("secret"), dict):
            for item in node["secret"]["items"]:
                yield "Secret", node["secret"]["secretName"], item["key"]
        for target in node.get("secretTargetRef", []):
            yield "Secret", target["name"], target["key"]


def test_every_key_that_is_read_is_there_and_every_key_is_read() -> None:
    there: dict[tuple[str, str], set[str]] = {}
    for o in objects_of("ConfigMap") + objects_of("Secret"):
        there[o["kind"], o["metadata"]["name"]] = set(o["data"] if "data" in o else o["stringData"])
    for _, kustomization in kustomizations():
        for generator in kustomization.get("configMapGenerator", []):
            there["ConfigMap", generator["name"]] = set(generator["files"])
    read: dict[tuple[str, str], set[str]] = {}
    for kind, name, key in references():
        keys = there[kind, name] if key == "*" else {key}
        read.setdefault((kind, name), set()).update(keys)
    assert read == there


def pod_labels() -> list[dict[str, str]]:
    return [labels_of(workload) for workload in workloads()]


def pods_with(selector: dict[str, str]) -> int:
    return sum(selector.items() <= labels.items() for labels in pod_labels())


def test_every_selector_finds_the_pods_of_one_workload() -> None:
    for name, workload in workloads().items():
        selector = workload["spec"]["selector"]["matchLabels"]
        assert selector.items() <= labels_of(name).items()
        for constraint in pod_of(name).get("topologySpreadConstraints", []):
            assert constraint["labelSelector"]["matchLabels"] == selector
    selectors: list[dict[str, str]] = [o["spec"]["selector"] for o in objects_of("Service")]
    selectors += [o["spec"]["selector"]["matchLabels"] for o in objects_of("PodDisruptionBudget")]
    for node in walk(objects_of("NetworkPolicy")):
        if "podSelector" in node:
            selectors.append(node["podSelector"]["matchLabels"])
    assert len(selectors) >= 8
    assert [pods_with(selector) for selector in selectors] == [1] * len(selectors)


def ports_of(workload: str) -> dict[str, int]:
    return {p["name"]: p["containerPort"] for p in main_container_of(workload)["ports"]}


def test_the_ports_agree() -> None:
    gateway = environment_of(main_container_of("gateway"))
    assert ports_of("gateway") == {"http": int(gateway["MINI_VLLM_PORT"])}
    for name in ("gateway", "redis"):
        (port,) = object_of("Service", name)["spec"]["ports"]
        assert ports_of(name)[port["targetPort"]] == port["port"]
        probes = [main_container_of(name)[probe] for probe in ("livenessProbe", "readinessProbe")]
        for probe in probes:
            assert probe.get("httpGet", probe.get("tcpSocket"))["port"] in ports_of(name)
    for policy in ("redis", "redis-from-keda"):
        (rule,) = object_of("NetworkPolicy", policy)["spec"]["ingress"]
        assert [port["port"] for port in rule["ports"]] == list(ports_of("redis"))
    address = object_of("ConfigMap", "redis-address")["data"]["address"]
    assert address == f"redis.{NAMESPACE}.svc:{ports_of('redis')['redis']}"
    assert workloads()["redis"]["spec"]["serviceName"] == "redis"
    (backend,) = [node["service"] for node in walk(objects_of("Ingress")) if "service" in node]
    assert backend == {"name": "gateway", "port": {"name": "http"}}


def test_the_kubelet_makes_no_settings_of_ours_out_of_services() -> None:
    assert not [o for o in objects_of("Service") if o["metadata"]["name"].startswith("mini-vllm")]
    assert [pod_of(name)["enableServiceLinks"] for name in workloads()] == [False] * 3


def test_every_image_has_a_version() -> None:
    images: dict[str, Any] = {}
    for _, kustomization in kustomizations():
        images |= {image["name"]: image["newTag"] for image in kustomization.get("images", [])}
    for _, container in containers():
        name, _, tag = container["image"].partition(":")
        assert re.match(r"\d+\.\d+", images.get(name, tag)), container["image"]


def test_the_page_names_only_files_that_are_there() -> None:
    text = (FOLDER / "README.md").read_text()
    named = re.findall(r"deploy/[\w./-]*\w", text)
    assert len(named) > 5
    assert [path for path in named if not (ROOT / path).exists()] == []
