from pathlib import Path

import pytest

from shared.machine import cpu_model
from shared.settings import load_settings
from shared.tuned import apply_record
from shared.tuning import (
    TuneKey,
    TuneRecord,
    clear_records,
    concurrency_class,
    find_record,
    save_record,
)

KEY = TuneKey(model_sha256="a" * 64, cpu="EPYC", cores=2, llama_cpp="1")


def record(**fields: object) -> TuneRecord:
    known: dict[str, object] = {
        "key": KEY, "kind": "tuned", "model": "m", "made_at": 1000.0, "workers": 2, "threads": 1,
        "slots": 16, "prefill_chunk_tokens": 32, "weight_format": "bf16", "objective": "throughput",
        "concurrency": 16, "prompt_tokens": 64, "output_tokens": 64, "memory_bytes": 1,
        "context_tokens": 4096, "figures": {"output_tokens_per_s": 1.0},
    }  # fmt: skip
    return TuneRecord.model_validate(known | fields)


def other_key(**fields: object) -> TuneKey:
    return KEY.model_copy(update=fields)


def test_what_was_saved_is_found(tmp_path: Path) -> None:
    save_record(tmp_path, record())
    assert find_record(tmp_path, KEY).record == record()


def test_the_newest_of_several_loads_is_used(tmp_path: Path) -> None:
    save_record(tmp_path, record(concurrency=1, made_at=2000.0))
    save_record(tmp_path, record())
    found = find_record(tmp_path, KEY).record
    assert found is not None
    assert found.concurrency == 1


def test_a_real_record_takes_the_place_of_a_quick_one_and_never_the_other_way(
    tmp_path: Path,
) -> None:
    quick = record(kind="quick", made_at=9000.0)
    save_record(tmp_path, quick)
    assert find_record(tmp_path, KEY).record == quick
    save_record(tmp_path, record())
    assert len(list((tmp_path / "tuning").glob("*.json"))) == 1
    save_record(tmp_path, quick)
    assert find_record(tmp_path, KEY).record == record()


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
    save_record(tmp_path, record())
    found = find_record(tmp_path, other_key(**change))
    assert found.record is None
    (remark,) = found.remarks
    assert remark.endswith(f"is not used: {words}")


def test_another_models_records_are_nobodys_business(tmp_path: Path) -> None:
    save_record(tmp_path, record())
    found = find_record(tmp_path, other_key(model_sha256="b" * 64))
    assert (found.record, found.remarks) == (None, ())


@pytest.mark.parametrize("text", ["", "{}", '{"workers": 0}', "\x00"])
def test_a_damaged_record_is_told_and_not_used(tmp_path: Path, text: str) -> None:
    path = save_record(tmp_path, record())
    path.write_text(text)
    found = find_record(tmp_path, KEY)
    assert found.record is None
    assert str(path) in found.remarks[0]


def test_records_are_cleared_of_one_model_or_all(tmp_path: Path) -> None:
    save_record(tmp_path, record())
    save_record(tmp_path, record(key=other_key(model_sha256="b" * 64)))
    assert len(clear_records(tmp_path, KEY.model_sha256)) == 1
    assert find_record(tmp_path, KEY).record is None
    assert len(clear_records(tmp_path)) == 1


def test_loads_are_alike_up_to_the_next_power_of_two() -> None:
    assert [concurrency_class(n) for n in (1, 2, 3, 16, 17)] == [1, 2, 4, 16, 32]


def test_a_record_fills_in_what_nobody_said() -> None:
    tuned = apply_record(record(), load_settings(), has_layout=False)
    assert tuned.changes == {"slots": 16, "prefill_chunk_tokens": 32, "weight_format": "bf16"}
    assert (tuned.workers, tuned.threads, tuned.kept) == (2, 1, ())


def test_what_was_said_wins_over_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINI_VLLM_SLOTS", "4")
    tuned = apply_record(record(), load_settings(), has_layout=True)
    assert tuned.changes == {"prefill_chunk_tokens": 32, "weight_format": "bf16"}
    assert (tuned.workers, tuned.threads) == (None, None)
    assert tuned.kept == ("slots", "workers and threads")


def test_a_cpu_is_told_by_name_and_numbers(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n")
    assert cpu_model(info) == "AMD EPYC (family 25 model 17 stepping 1)"
    assert cpu_model(tmp_path / "none")
