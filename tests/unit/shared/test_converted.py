from hashlib import sha256
from pathlib import Path

import pytest

from shared.converted import converted_path, weights_path
from shared.errors import SetupError, UnknownModel
from shared.models import SMOLLM2, ResolvedModel
from tests.unit.shared.test_gguf_header import make_gguf

Q4_1 = 3


def make_model(folder: Path, name: str = "m.gguf") -> ResolvedModel:
    path = folder / name
    path.write_bytes(make_gguf(general__file_type=Q4_1, block_count=1))
    return ResolvedModel("m", path)


def test_a_copy_is_named_by_the_content_of_its_source(tmp_path: Path) -> None:
    source = make_model(tmp_path).path
    digest = sha256(source.read_bytes()).hexdigest()[:12]
    expected = tmp_path / "models" / "converted" / f"m.{digest}.bf16.gguf"
    assert converted_path(source, "BF16", tmp_path / "models") == expected


def test_another_content_has_another_copy(tmp_path: Path) -> None:
    source = make_model(tmp_path).path
    before = converted_path(source, "bf16", tmp_path)
    source.write_bytes(make_gguf(general__file_type=Q4_1, block_count=2) + b"more")
    assert converted_path(source, "bf16", tmp_path) != before


def test_workers_load_the_file_as_it_is_or_its_copy(tmp_path: Path) -> None:
    model = make_model(tmp_path)
    assert weights_path(model, "as-is", tmp_path) == model.path
    assert weights_path(model, "q4_1", tmp_path) == model.path
    copy = converted_path(model.path, "bf16", tmp_path)
    copy.write_bytes(b"x")
    assert weights_path(model, "bf16", tmp_path) == copy


def test_a_copy_that_is_missing_is_refused_with_the_command_that_makes_it(tmp_path: Path) -> None:
    model = make_model(tmp_path)
    with pytest.raises(UnknownModel, match=rf"model convert {model.path} --to bf16"):
        weights_path(model, "bf16", tmp_path)
    known = ResolvedModel(SMOLLM2.name, make_model(tmp_path, SMOLLM2.file_name).path)
    with pytest.raises(UnknownModel, match=r"model convert smollm2 --to bf16"):
        weights_path(known, "bf16", tmp_path)


def test_a_source_that_cannot_be_read_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot be read"):
        converted_path(tmp_path / "none.gguf", "bf16", tmp_path)
