"""What a GGUF file says of its model: the key-value header and the shapes of its tensors.

Reads the few kilobytes that matter and steps over the vocabulary (the ``gguf`` package makes an object
of every token: 3.5 s for a 49k vocabulary, where this takes some 30 ms). Never touches tensor data.
"""

import mmap
import struct
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from shared.errors import ModelUnusable

_MAGIC = b"GGUF"
_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"
}  # fmt: skip
_STRING, _ARRAY = 8, 9
#: Fields of models with a recurrent state, a compressed cache, or layers that share theirs.
_OTHER_CACHES = ("ssm.", "wkv.", "attention.kv_lora_rank", "attention.shared_kv_layers")
_TABLES = ("token_embd.weight", "output.weight")
#: Longer arrays are vocabulary; no fact of a model is one.
_MAX_ARRAY_ITEMS = 4096


@dataclass(frozen=True)
class ModelFacts:
    fields: dict[str, Any] = field(repr=False)
    num_parameters: int
    size_bytes: int
    #: Of the tensors that each token reads: not of tables and experts, of which it reads a few rows.
    dense_bytes: int = 0
    #: Of the embeddings and the output matrix.
    table_parameters: int = 0
    #: What stands before the tensors' data.
    header_bytes: int = 0

    @property
    def architecture(self) -> str:
        return str(self.fields.get("general.architecture", "unknown"))

    @property
    def title(self) -> str:
        return str(self.fields.get("general.name", ""))

    @property
    def chat_template(self) -> str | None:
        return self.fields.get("tokenizer.chat_template")

    @property
    def file_type(self) -> int | None:
        """llama.h's ``enum llama_ftype``, where the file says it."""
        value = self.fields.get("general.file_type")
        return value if isinstance(value, int) else None

    @property
    def num_layers(self) -> int:
        return int(self._of("block_count"))

    @property
    def context_tokens(self) -> int:
        return int(self._of("context_length"))

    @property
    def embedding_size(self) -> int:
        return int(self._of("embedding_length"))

    @property
    def kv_bytes_per_token(self) -> int:
        """Keys and values of one token in all layers, as 16-bit floats."""
        heads = self._of("attention.head_count") or 1
        num_heads = max(heads) if isinstance(heads, list) else heads
        head_size = self.embedding_size // max(1, num_heads)
        row = self._of("attention.key_length", head_size) + self._of(
            "attention.value_length", head_size
        )
        kv_heads = self._of("attention.head_count_kv", num_heads)
        per_layer = kv_heads if isinstance(kv_heads, list) else [kv_heads] * self.num_layers
        return int(sum(per_layer) * row * 2)

    @property
    def has_plain_cache(self) -> bool:
        """Whether each layer keeps keys and values of its own for each token, and nothing else."""
        keys = [key.removeprefix(f"{self.architecture}.") for key in self.fields]
        return not any(key.startswith(_OTHER_CACHES) for key in keys)

    def _of(self, key: str, default: Any = 0) -> Any:
        return self.fields.get(f"{self.architecture}.{key}", default)


def read_facts(path: Path) -> ModelFacts:
    """Raises ``ModelUnusable`` where the file is not a whole GGUF header."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            if view[:4] != _MAGIC:
                raise ModelUnusable(f"{path} is not a GGUF file (it does not begin with GGUF)")
            facts = _Reader(view).facts()
            _ = facts.kv_bytes_per_token, facts.context_tokens  # of odd types in a damaged header
            return facts
    except OSError as error:
        raise ModelUnusable(f"{path} cannot be read: {error.strerror}") from None
    except (struct.error, ValueError, TypeError, KeyError, UnicodeDecodeError):
        raise ModelUnusable(f"{path} is damaged or cut short: its header cannot be read") from None


def _dense_bytes(begins: dict[str, int], data_bytes: int) -> int:
    """Each tensor reaches to where the next one begins. Never more than there is."""
    if not begins:
        return 0
    has_own_output = "output.weight" in begins
    ordered = sorted(begins.items(), key=lambda tensor: tensor[1])
    ends = [begin for _, begin in ordered[1:]] + [data_bytes]
    total = sum(
        max(0, min(end, data_bytes) - begin)
        for (name, begin), end in zip(ordered, ends, strict=True)
        if "_exps." not in name and not (name == "token_embd.weight" and has_own_output)
    )
    return min(total, data_bytes)


class _Reader:
    def __init__(self, view: mmap.mmap) -> None:
        self._view = view
        self._at = 4

    def facts(self) -> ModelFacts:
        version = self._scalar("<I")
        if version not in (2, 3):
            raise ValueError(f"GGUF version {version}")
        num_tensors, num_fields = self._scalar("<Q"), self._scalar("<Q")
        fields = {}
        for _ in range(num_fields):
            key = self._text()
            fields[key] = self._value(self._scalar("<I"))
        tensors = [self._tensor() for _ in range(num_tensors)]
        num_parameters = sum(count for _, count, _ in tensors)
        data_bytes = max(0, len(self._view) - self._at)
        begins = {name: offset for name, _, offset in tensors}
        return ModelFacts(
            fields,
            num_parameters,
            len(self._view),
            _dense_bytes(begins, data_bytes),
            table_parameters=sum(count for name, count, _ in tensors if name in _TABLES),
            header_bytes=self._at,
        )

    def _tensor(self) -> tuple[str, int, int]:
        """Name, number of parameters, where its data begins."""
        name = self._text()
        shape = [self._scalar("<Q") for _ in range(self._scalar("<I"))]
        self._scalar("<I")  # its type
        return name, prod(shape), self._scalar("<Q")

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._text()
        if kind != _ARRAY:
            return self._scalar(_SCALARS[kind])
        item, count = self._scalar("<I"), self._scalar("<Q")
        if count <= _MAX_ARRAY_ITEMS:
            return [self._value(item) for _ in range(count)]
        if item == _STRING:
            self._skip_texts(count)
        else:
            self._at += count * struct.calcsize(_SCALARS[item])
        return None

    def _skip_texts(self, count: int) -> None:
        read, view, at = struct.Struct("<Q").unpack_from, self._view, self._at
        for _ in range(count):
            at += 8 + read(view, at)[0]
        self._at = at

    def _text(self) -> str:
        length = self._scalar("<Q")
        begin, self._at = self._at, self._at + length
        if self._at > len(self._view):
            raise ValueError("text past the end of the file")
        return self._view[begin : self._at].decode()

    def _scalar(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self._view, self._at)
        self._at += struct.calcsize(form)
        return value
