"""The Kubernetes manifests as data, and what tests look up in them. Knows no rule that they should keep."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy/kubernetes"
#: What it reads from elsewhere.
REDIS_USERS = ROOT / "deploy/redis"


def files() -> list[Path]:
    return sorted(FOLDER.rglob("*.yaml"))


def documents(path: Path) -> list[Manifest]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


@cache
def kustomizations() -> tuple[tuple[Path, Manifest], ...]:
    """Folder and content of each."""
    paths = [*FOLDER.rglob("kustomization.yaml"), REDIS_USERS / "kustomization.yaml"]
    return tuple((path.parent, documents(path)[0]) for path in sorted(paths))


@cache
def objects() -> tuple[Manifest, ...]:
    """What a cluster would be given; the examples too."""
    paths = [path for path in files() if path.name != "kustomization.yaml"]
    return tuple(document for path in paths for document in documents(path))


def object_of(kind: str, name: str) -> Manifest:
    (found,) = [o for o in objects() if (o["kind"], o["metadata"]["name"]) == (kind, name)]
    return found


def objects_of(kind: str) -> list[Manifest]:
    return [o for o in objects() if o["kind"] == kind]


def workloads() -> dict[str, Manifest]:
    """By name: whatever has a pod template."""
    return {o["metadata"]["name"]: o for o in objects() if "template" in o.get("spec", {})}


def pod_of(workload: str) -> Manifest:
    pod: Manifest = workloads()[workload]["spec"]["template"]["spec"]
    return pod


def labels_of(workload: str) -> dict[str, str]:
    labels: dict[str, str] = workloads()[workload]["spec"]["template"]["metadata"]["labels"]
    return labels


def containers_of(workload: str) -> list[Manifest]:
    pod = pod_of(workload)
    return [*pod.get("initContainers", []), *pod["containers"]]


def main_container_of(workload: str) -> Manifest:
    (container,) = pod_of(workload)["containers"]
    return dict(container)


def containers() -> Iterator[tuple[str, Manifest]]:
    """Each with the name of its workload."""
    for workload in workloads():
        for container in containers_of(workload):
            yield workload, container


def environment_of(container: Manifest) -> dict[str, str]:
    """What stands in the manifests themselves: nothing that comes from a Secret or from the pod."""
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        found |= object_of("ConfigMap", source["configMapRef"]["name"])["data"]
    found |= {e["name"]: e["value"] for e in container.get("env", []) if "value" in e}
    return found


def walk(node: Any) -> Iterator[Manifest]:
    """Every mapping in it, from the outside in."""
    if isinstance(node, dict):
        yield node
    for child in (
        node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    ):
        yield from walk(child)
