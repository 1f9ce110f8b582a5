import pytest

from shared.cores import MemoryRoom
from shared.errors import SetupError
from shared.footprint import cells_per_slot, check_fit, footprint_of
from shared.gguf_header import ModelFacts
from shared.settings import WeightsSharing

MB = 10**6
FIELDS = {
    "general.architecture": "llama",
    "llama.block_count": 30,
    "llama.context_length": 8192,
    "llama.embedding_length": 576,
    "llama.attention.head_count": 9,
    "llama.attention.head_count_kv": 3,
}
#: As SmolLM2-135M has them: 802 MB of KV cache for 8 slots of 4096 tokens.
FACTS = ModelFacts(FIELDS, 135 * MB, 98 * MB, dense_bytes=97 * MB)
MACHINE, CONTAINER = 64_000 * MB, 1_000 * MB


def check(
    facts: ModelFacts = FACTS,
    *,
    machine_bytes: int = MACHINE,
    container_bytes: int | None = None,
    cached_bytes: int = 0,
    slots: int = 8,
    context_tokens: int = 0,
) -> None:
    rooms = [MemoryRoom(machine_bytes, is_container=False)]
    if container_bytes is not None:
        rooms.append(MemoryRoom(container_bytes, is_container=True))
    check_fit(
        facts,
        slots=slots,
        context_tokens=context_tokens,
        cached_bytes=cached_bytes,
        rooms=tuple(rooms),
    )


def test_the_cells_of_a_slot_come_in_blocks_with_one_to_spare() -> None:
    assert [cells_per_slot(n) for n in (255, 256, 4096)] == [256, 512, 4352]


def test_the_cache_is_that_of_all_slots() -> None:
    found = footprint_of(FACTS, slots=8, context_tokens=0)
    assert found.context_tokens == 4096
    assert found.kv_cache_bytes == 30 * 3 * (64 + 64) * 2 * 4352 * 8 == 802_160_640
    assert found.planned_bytes > found.kv_cache_bytes + 2 * 98 * MB
    assert footprint_of(FACTS, slots=1, context_tokens=255).kv_cache_bytes == 23_040 * 256


@pytest.mark.parametrize(
    ("file_type", "sharing", "private", "shared"),
    [
        (3, "auto", 0, 98),  # Q4_1
        (32, "auto", 0, 98),  # BF16
        (2, "auto", 98, 98),  # Q4_0, which is repacked
        (25, "auto", 98, 98),  # IQ4_NL
        (None, "auto", 98, 98),
        (2, "shared", 0, 98),
        (3, "private", 98, 0),
        (2, "private", 98, 0),
    ],
)
def test_weights_are_private_shared_or_both(
    file_type: int | None, sharing: WeightsSharing, private: int, shared: int
) -> None:
    fields = FIELDS | {"general.file_type": file_type}
    facts = ModelFacts(fields, 135 * MB, 98 * MB, dense_bytes=97 * MB)
    found = footprint_of(facts, slots=1, context_tokens=255, sharing=sharing)
    assert (found.private_weights_bytes, found.shared_weights_bytes) == (private * MB, shared * MB)
    assert found.planned_bytes == found.private_bytes + shared * MB
    assert f"{private} MB private weights, {shared} MB shared weights" in str(found)


def test_what_another_has_mapped_is_of_no_use_to_private_weights() -> None:
    room = MemoryRoom(850 * MB, is_container=True)

    def check_sharing(sharing: WeightsSharing) -> None:
        check_fit(
            FACTS,
            slots=8,
            context_tokens=0,
            cached_bytes=98 * MB,
            rooms=(room,),
            sharing=sharing,
        )

    check_sharing("auto")
    with pytest.raises(SetupError):
        check_sharing("private")


def test_what_does_not_fit_says_what_it_needs_what_there_is_and_what_to_do() -> None:
    with pytest.raises(SetupError) as refused:
        check(container_bytes=300 * MB)
    message = refused.value.message
    assert "needs 919 MB" in message
    assert "97 MB weights, 802 MB KV cache for 8 slots of 4096 tokens" in message
    assert "the memory limit of this container leaves 300 MB" in message
    assert "lower MINI_VLLM_CONTEXT_TOKENS or MINI_VLLM_SLOTS" in message
    with pytest.raises(SetupError, match=r"this machine has free 600 MB: .* end what else"):
        check(machine_bytes=600 * MB)


def test_what_fits_is_let_through() -> None:
    check(container_bytes=920 * MB)
    check(container_bytes=300 * MB, slots=1, context_tokens=1024)
    check_fit(FACTS, slots=8, context_tokens=0, cached_bytes=0, rooms=())


def test_a_container_needs_no_room_for_weights_that_another_may_have_mapped() -> None:
    check(container_bytes=850 * MB, cached_bytes=98 * MB)
    with pytest.raises(SetupError):
        check(container_bytes=850 * MB, cached_bytes=10 * MB)
    with pytest.raises(SetupError):
        check(machine_bytes=850 * MB, cached_bytes=98 * MB)


@pytest.mark.parametrize(
    "field",
    ["ssm.state_size", "wkv.head_size", "attention.kv_lora_rank", "attention.shared_kv_layers"],
)
def test_a_cache_of_another_shape_is_not_guessed(field: str) -> None:
    other = ModelFacts(FIELDS | {f"llama.{field}": 16}, 135 * MB, 98 * MB, dense_bytes=97 * MB)
    check(other, container_bytes=200 * MB)
    with pytest.raises(SetupError, match="97 MB weights, 0 MB KV cache"):
        check(other, container_bytes=100 * MB)
