import pytest
from openai.types import Batch as OpenAIBatch

from api.batches.examples import BATCH
from api.batches.record import Batch, BatchRequest, BatchStatus, LineProblem, Problems

RECORD = BatchRequest(endpoint="/v1/completions", input_file_id="file-1", metadata={"a": "b"})
RAW = {
    b"record": RECORD.model_dump_json().encode(),
    b"owner": b"o",
    b"status": b"failed",
    b"failed_at": b"12",
    b"created_at": b"10",
    b"expires_at": b"99",
    b"problems": Problems(found=(LineProblem(code="c", message="m", line=3),))
    .model_dump_json()
    .encode(),
}


def test_it_is_what_openais_client_reads() -> None:
    batch = Batch.from_hash("batch_1", RAW)
    assert batch
    told = batch.to_object()
    assert told.keys() == BATCH.keys()
    read = OpenAIBatch.model_validate(told, strict=False)
    assert (read.status, read.failed_at, read.completed_at) == ("failed", 12, None)
    assert read.errors
    assert read.errors.data
    assert read.errors.data[0].line == 3
    assert not read.model_extra


@pytest.mark.parametrize("field", [b"record", b"owner", b"status", b"created_at"])
def test_a_damaged_one_is_none(field: bytes) -> None:
    assert Batch.from_hash("batch_1", {k: v for k, v in RAW.items() if k != field}) is None
    assert Batch.from_hash("batch_1", RAW | {field: b"?" if field != b"owner" else b"\xff"}) is None


def test_four_states_are_final() -> None:
    final = {status.value for status in BatchStatus if status.is_final}
    assert final == {"failed", "completed", "expired", "cancelled"}
