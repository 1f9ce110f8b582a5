"""Records of the tuner, with what does not matter filled in."""

from shared.tuning import TuneKey, TuneRecord

KEY = TuneKey(model_sha256="a" * 64, cpu="EPYC", cores=2, llama_cpp="1")


def make_record(**fields: object) -> TuneRecord:
    known: dict[str, object] = {
        "key": KEY, "kind": "tuned", "model": "m", "made_at": 1000.0, "workers": 2, "threads": 1,
        "slots": 16, "prefill_chunk_tokens": 32, "weight_format": "bf16", "objective": "throughput",
        "concurrency": 16, "prompt_tokens": 64, "output_tokens": 64, "memory_bytes": 1,
        "context_tokens": 4096, "figures": {"output_tokens_per_s": 1.0},
    }  # fmt: skip
    return TuneRecord.model_validate(known | fields)


def other_key(**fields: object) -> TuneKey:
    return KEY.model_copy(update=fields)
