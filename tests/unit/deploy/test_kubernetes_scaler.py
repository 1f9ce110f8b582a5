"""The KEDA scaler of the Kubernetes manifests looks at the queues that there are."""

from shared.keys import PRIORITIES, queue_key, queue_name
from shared.models import model_name
from tests.unit.deploy.manifests import (
    FOLDER,
    environment_of,
    main_container_of,
    object_of,
    workloads,
)

SETTINGS = environment_of(main_container_of("worker"))
SCALER = object_of("ScaledObject", "worker")["spec"]


def test_it_counts_each_queue_of_the_model() -> None:
    model = model_name(SETTINGS["MINI_VLLM_MODEL"])
    names = [trigger["metadata"]["listName"] for trigger in SCALER["triggers"]]
    assert names == [queue_key(queue_name(model, priority)) for priority in PRIORITIES]


def test_it_asks_for_a_worker_before_a_whole_batch_waits_for_each() -> None:
    lengths = [int(trigger["metadata"]["listLength"]) for trigger in SCALER["triggers"]]
    assert lengths == [int(SETTINGS["MINI_VLLM_SLOTS"]) // 2] * 3


def test_it_finds_redis_by_the_address_and_the_user_that_are_there() -> None:
    container = main_container_of("worker")
    (user,) = (FOLDER / "redis/scaler.acl").read_text().splitlines()
    authentication = object_of("TriggerAuthentication", "redis")["spec"]["secretTargetRef"]
    assert [target["parameter"] for target in authentication] == ["password"]
    for trigger in SCALER["triggers"]:
        assert trigger["type"] == "redis"
        assert trigger["authenticationRef"] == {"name": "redis"}
        assert trigger["metadata"]["addressFromEnv"] in [e["name"] for e in container["env"]]
        assert user.startswith(f"user {trigger['metadata']['username']} on ")


def test_it_leaves_a_worker_and_nobody_else_sets_their_number() -> None:
    assert SCALER["scaleTargetRef"] == {"name": "worker"}
    assert "replicas" not in workloads()["worker"]["spec"]
    # With none, jobs are refused after MINI_VLLM_WORKER_GRACE_S, and no queue would call one back.
    assert 1 <= SCALER["minReplicaCount"] < SCALER["maxReplicaCount"]
