import pytest

from shared.errors import SetupError
from shared.settings import load_settings


def test_the_environment_sets_what_flags_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINI_VLLM_SLOTS", "3")
    monkeypatch.setenv("MINI_VLLM_THREADS", "2")
    settings = load_settings(threads=1)
    assert (settings.slots, settings.threads) == (3, 1)


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINI_VLLM_SLOTS", "")
    monkeypatch.setenv("MINI_VLLM_PUBLISH", "")
    assert load_settings() == load_settings(slots=8, publish="")


@pytest.mark.parametrize(
    ("key", "value"),
    [("MINI_VLLM_SLOTS", "many"), ("MINI_VLLM_PORT", "70000"), ("MINI_VLLM_LOG_LEVEL", "loud")],
)
def test_a_bad_value_names_key_and_value(
    monkeypatch: pytest.MonkeyPatch, key: str, value: str
) -> None:
    monkeypatch.setenv(key, value)
    with pytest.raises(SetupError) as caught:
        load_settings()
    assert key in caught.value.message
    assert value in caught.value.message


def test_the_budget_for_bodies_takes_at_least_one() -> None:
    assert load_settings(max_body_bytes=4096, max_inflight_body_bytes=4096).max_body_bytes == 4096
    with pytest.raises(SetupError) as caught:
        load_settings(max_body_bytes=4096, max_inflight_body_bytes=4095)
    assert caught.value.message == (
        "bad setting: MINI_VLLM_MAX_INFLIGHT_BODY_BYTES=4095: "
        "must be at least MINI_VLLM_MAX_BODY_BYTES (4096)"
    )


def test_the_budget_for_bodies_counts_by_default_too() -> None:
    with pytest.raises(SetupError, match="MAX_INFLIGHT_BODY_BYTES=268435456: must be at least"):
        load_settings(max_body_bytes=2**29)


def test_a_weight_format_is_one_of_the_known_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings(weight_format="BF16").weight_format == "bf16"
    monkeypatch.setenv("MINI_VLLM_WEIGHT_FORMAT", "q9")
    with pytest.raises(SetupError, match=r"MINI_VLLM_WEIGHT_FORMAT='q9': must be as-is or .*bf16"):
        load_settings()
