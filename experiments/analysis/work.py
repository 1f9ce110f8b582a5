"""What a model has to read and to compute for a token, from its header. Estimates: norms, softmax and
sampling are left out. Pure."""

from dataclasses import dataclass

from shared.gguf_header import ModelFacts


@dataclass(frozen=True, slots=True)
class ModelWork:
    """``layer_parameters`` multiply every token, ``output_parameters`` only those whose logits are asked
    for. ``attention_dims``: heads times their size, over all layers."""

    layer_parameters: int
    output_parameters: int
    attention_dims: int
    weight_bytes: int  #: that a step reads, however many rows it has
    kv_bytes_per_token: int

    def flops(self, first: int, end: int, *, outputs: int) -> float:
        """Of the tokens in these positions: 2 for each weight, and 4 for each dimension of attention and
        each token that is looked back at, the token itself included."""
        tokens = end - first
        looked_at = (end * (end + 1) - first * (first + 1)) / 2
        return (
            2.0 * self.layer_parameters * tokens
            + 2.0 * self.output_parameters * outputs
            + 4.0 * self.attention_dims * looked_at
        )

    def step_flops(self, rows: int, position: int) -> float:
        return rows * self.flops(position, position + 1, outputs=1)

    def step_bytes(self, rows: int, position: int) -> float:
        return self.weight_bytes + float(rows) * (position + 1) * self.kv_bytes_per_token


def work_of(facts: ModelFacts, num_vocab: int) -> ModelWork:
    """NOTE: of a mixture of experts all are counted, though a token meets a few."""
    heads = facts.fields.get(f"{facts.architecture}.attention.head_count", 1)
    num_heads = max(heads) if isinstance(heads, list) else heads
    head_size = facts.fields.get(
        f"{facts.architecture}.attention.key_length", facts.embedding_size // max(1, num_heads)
    )
    return ModelWork(
        layer_parameters=facts.num_parameters - facts.table_parameters,
        output_parameters=num_vocab * facts.embedding_size,
        attention_dims=facts.num_layers * num_heads * head_size,
        weight_bytes=facts.dense_bytes,
        kv_bytes_per_token=facts.kv_bytes_per_token,
    )
