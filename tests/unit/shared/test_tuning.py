from pathlib import Path

import pytest

from shared.machine import cpu_model
from shared.settings import load_settings
from shared.tuned import apply_record
from shared.tuning import (
    clear_records,
    concurrency_class,
    find_record,
    save_record,
)
from tests.records import KEY, make_record, other_key


def test_what_was_saved_is_found(tmp_path: Path) -> None:
    save_record(tmp_path, make_record())
    assert find_record(tmp_path, KEY, 16).record == make_record()


@pytest.mark.parametrize(
    ("asked", "used"),
    [(1, 1), (2, 1), (4, 8), (8, 8), (12, 8), (16, 8), (17, 64), (64, 64), (900, 64)],
)
def test_the_nearest_of_several_loads_is_used(tmp_path: Path, asked: int, used: int) -> None:
    """As loads are told apart: in powers of two. Of 8 and 64, 17 (to 32) is nearer to 64."""
    for concurrency in (1, 8, 64):
        save_record(tmp_path, make_record(concurrency=concurrency, made_at=1000.0 - concurrency))
    found = find_record(tmp_path, KEY, asked).record
    assert found is not None
    assert found.concurrency == used


def test_of_two_that_are_as_near_the_larger_is_used(tmp_path: Path) -> None:
    """Its slots are enough for all clients."""
    save_record(tmp_path, make_record(concurrency=8, made_at=2000.0))
    save_record(tmp_path, make_record(concurrency=32))
    found = find_record(tmp_path, KEY, 16).record
    assert found is not None
    assert found.concurrency == 32


def test_records_of_other_loads_are_named_and_so_is_what_was_asked(tmp_path: Path) -> None:
    save_record(tmp_path, make_record(concurrency=1))
    save_record(tmp_path, make_record(concurrency=16))
    (other,) = find_record(tmp_path, KEY, 16).remarks
    assert "for 1 clients is not used: the tuned record of" in other
    assert other.endswith("for 16 clients suits MINI_VLLM_TUNE_CONCURRENCY=16 better")
    other, asked = find_record(tmp_path, KEY, 300).remarks
    assert "for 1 clients is not used" in other
    assert asked == (
        "no record is for MINI_VLLM_TUNE_CONCURRENCY=300 clients; the nearest is for 16, and "
        "`mini-vllm tune --concurrency 300` makes one"
    )


def test_a_lone_record_of_the_load_that_was_asked_for_needs_no_remark(tmp_path: Path) -> None:
    save_record(tmp_path, make_record(concurrency=13))
    assert find_record(tmp_path, KEY, 16).remarks == ()


def test_a_real_record_of_another_load_wins_over_a_quick_one(tmp_path: Path) -> None:
    save_record(tmp_path, make_record(concurrency=1))
    save_record(tmp_path, make_record(kind="quick", made_at=9000.0))
    found = find_record(tmp_path, KEY, 16).record
    assert found is not None
    assert found.kind == "tuned"


def test_a_real_record_takes_the_place_of_a_quick_one_and_never_the_other_way(
    tmp_path: Path,
) -> None:
    quick = make_record(kind="quick", made_at=9000.0)
    save_record(tmp_path, quick)
    assert find_record(tmp_path, KEY, 16).record == quick
    save_record(tmp_path, make_record())
    assert len(list((tmp_path / "tuning").glob("*.json"))) == 1
    save_record(tmp_path, quick)
    assert find_record(tmp_path, KEY, 16).record == make_record()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cpu": "Xeon"}, "the CPU is Xeon, and was EPYC"),
        ({"cores": 4}, "4 cores are usable, and 2 were"),
        ({"llama_cpp": "2"}, "llama.cpp is 2, and was 1"),
    ],
)
def test_a_record_of_another_machine_or_build_is_not_used_and_says_why(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    save_record(tmp_path, make_record())
    found = find_record(tmp_path, other_key(**change), 16)
    assert found.record is None
    (remark,) = found.remarks
    assert remark.endswith(f"is not used: {words}")


def test_another_models_records_are_nobodys_business(tmp_path: Path) -> None:
    save_record(tmp_path, make_record())
    found = find_record(tmp_path, other_key(model_sha256="b" * 64), 16)
    assert (found.record, found.remarks) == (None, ())


@pytest.mark.parametrize("text", ["", "{}", '{"workers": 0}', "\x00"])
def test_a_damaged_record_is_told_and_not_used(tmp_path: Path, text: str) -> None:
    path = save_record(tmp_path, make_record())
    path.write_text(text)
    found = find_record(tmp_path, KEY, 16)
    assert found.record is None
    assert str(path) in found.remarks[0]


def test_records_are_cleared_of_one_model_or_all(tmp_path: Path) -> None:
    save_record(tmp_path, make_record())
    save_record(tmp_path, make_record(key=other_key(model_sha256="b" * 64)))
    assert len(clear_records(tmp_path, KEY.model_sha256)) == 1
    assert find_record(tmp_path, KEY, 16).record is None
    assert len(clear_records(tmp_path)) == 1


def test_loads_are_alike_up_to_the_next_power_of_two() -> None:
    assert [concurrency_class(n) for n in (1, 2, 3, 16, 17)] == [1, 2, 4, 16, 32]


def test_a_record_fills_in_what_nobody_said() -> None:
    tuned = apply_record(make_record(), load_settings(), has_layout=False, workers=None)
    assert tuned.changes == {"slots": 16, "prefill_chunk_tokens": 32, "weight_format": "bf16"}
    assert (tuned.workers, tuned.threads, tuned.kept) == (2, 1, ())


def test_what_was_said_wins_over_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINI_VLLM_SLOTS", "4")
    tuned = apply_record(make_record(), load_settings(), has_layout=True, workers=4)
    assert tuned.changes == {"prefill_chunk_tokens": 32, "weight_format": "bf16"}
    assert (tuned.workers, tuned.threads) == (None, None)
    assert tuned.kept == ("slots", "workers and threads")


def test_a_cpu_is_told_by_name_and_numbers(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n")
    assert cpu_model(info) == "AMD EPYC (family 25 model 17 stepping 1)"
    assert cpu_model(tmp_path / "none")
