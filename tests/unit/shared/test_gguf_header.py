import struct
from pathlib import Path

import pytest

from shared.errors import ModelUnusable
from shared.gguf_header import read_facts


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def make_gguf(**numbers: int) -> bytes:
    """A header with an architecture, numbers of it, a long vocabulary and one 4 x 3 tensor."""
    fields = [text("general.architecture") + struct.pack("<I", 8) + text("llama")]
    fields += [
        text(key if key.startswith("general.") else f"llama.{key}") + struct.pack("<II", 4, value)
        for key, value in ((k.replace("__", "."), v) for k, v in numbers.items())
    ]
    words = b"".join(text(f"w{i}") for i in range(5000))
    fields.append(text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 5000) + words)
    tensor = text("output.weight") + struct.pack("<IQQIQ", 2, 4, 3, 0, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, 1, len(fields)) + b"".join(fields) + tensor


def test_facts_are_read_past_the_vocabulary(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(
        make_gguf(
            block_count=2,
            context_length=512,
            embedding_length=64,
            attention__head_count=4,
            attention__head_count_kv=2,
            general__file_type=7,
        )
    )
    facts = read_facts(path)
    assert (facts.architecture, facts.num_layers, facts.context_tokens) == ("llama", 2, 512)
    assert facts.num_parameters == 12
    assert facts.kv_bytes_per_token == 2 * 2 * (16 + 16) * 2
    assert facts.chat_template is None
    assert facts.file_type == 7
    assert facts.table_parameters == 12
    assert facts.header_bytes == facts.size_bytes


@pytest.mark.parametrize("content", [b"", b"not a model", b"GGUF", make_gguf(block_count=1)[:-40]])
def test_what_is_not_a_whole_header_is_said_in_words(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelUnusable, match=r"bad\.gguf"):
        read_facts(path)


def test_bytes_that_each_token_reads_leave_out_tables_and_experts(tmp_path: Path) -> None:
    def facts_of(*tensors: tuple[str, int], data_bytes: int = 1000) -> int:
        fields = text("general.architecture") + struct.pack("<I", 8) + text("llama")
        shapes = b"".join(
            text(name) + struct.pack("<IQIQ", 1, 4, 0, offset) for name, offset in tensors
        )
        head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1) + fields + shapes
        path = tmp_path / "m.gguf"
        path.write_bytes(head + bytes(data_bytes))
        return read_facts(path).dense_bytes

    tied = [("token_embd.weight", 0), ("blk.0.attn_q.weight", 400), ("blk.0.ffn_up.weight", 600)]
    assert facts_of(*tied) == 1000
    assert facts_of(*tied, ("output.weight", 800)) == 600
    assert facts_of(*tied, ("blk.0.ffn_up_exps.weight", 700)) == 700
    assert facts_of(("a", 2**63), ("b", 0), data_bytes=10) == 10
    assert facts_of() == 0
