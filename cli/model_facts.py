"""What a GGUF file says of its model, for people."""

from pathlib import Path

from shared.gguf_header import read_facts


def describe(path: Path) -> list[tuple[str, str]]:
    facts = read_facts(path)
    kv_bytes = facts.kv_bytes_per_token
    context_mb = kv_bytes * facts.context_tokens / 1e6
    return [
        ("file", str(path)),
        ("size", f"{facts.size_bytes / 1e6:.0f} MB"),
        ("name", facts.title or "-"),
        ("architecture", facts.architecture),
        ("quantization", quantization_name(facts.fields.get("general.file_type"))),
        ("parameters", f"{facts.num_parameters / 1e6:.0f} M"),
        ("context", f"{facts.context_tokens} tokens"),
        ("layers", str(facts.num_layers)),
        ("embedding", str(facts.embedding_size)),
        ("KV cache", f"{kv_bytes} bytes per token as f16 ({context_mb:.0f} MB for its context)"),
        ("chat template", "yes" if facts.chat_template else "no"),
    ]


def quantization_name(file_type: int | None) -> str:
    # Takes 0.3 s (numpy), and only this one line needs it.
    from gguf import LlamaFileType

    try:
        name: str = LlamaFileType(file_type).name
    except ValueError:
        return "unknown"
    return name.removeprefix("MOSTLY_").removeprefix("ALL_")
