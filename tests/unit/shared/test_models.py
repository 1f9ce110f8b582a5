from pathlib import Path

import pytest

from shared.errors import UnknownModel
from shared.models import SMOLLM2, default_model_path, resolve_model, safe_name


def test_a_known_name_stands_for_its_file_in_the_model_directory(tmp_path: Path) -> None:
    default_model_path(tmp_path).write_bytes(b"x")
    model = resolve_model("smollm2", tmp_path)
    assert model.name == "smollm2"
    assert model.path == tmp_path / SMOLLM2.file_name


def test_a_known_name_that_is_not_here_says_how_to_fetch_it(tmp_path: Path) -> None:
    with pytest.raises(UnknownModel, match="mini-vllm model pull smollm2"):
        resolve_model("smollm2", tmp_path)


def test_a_path_is_named_by_its_stem_made_safe(tmp_path: Path) -> None:
    path = tmp_path / "My model: v2.Q4_0.gguf"
    path.write_bytes(b"x")
    model = resolve_model(str(path), tmp_path / "models")
    assert (model.name, model.path) == ("My-model-v2.Q4_0", path)


def test_a_bare_name_finds_a_file_in_the_model_directory(tmp_path: Path) -> None:
    (tmp_path / "tiny.Q8_0.gguf").write_bytes(b"x")
    for name in ("tiny.Q8_0", "tiny.Q8_0.gguf"):
        assert resolve_model(name, tmp_path).name == "tiny.Q8_0"


def test_a_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.gguf").write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    assert resolve_model("m.gguf", tmp_path / "models").path == tmp_path / "m.gguf"


@pytest.mark.parametrize("name", ["nope", "/no/such.gguf", "dir"])
def test_what_is_neither_name_nor_file_is_unknown(tmp_path: Path, name: str) -> None:
    (tmp_path / "dir").mkdir()
    with pytest.raises(UnknownModel, match=name):
        resolve_model(name, tmp_path)


@pytest.mark.parametrize(
    ("stem", "name"), [("a b", "a-b"), ("Ünï", "n"), ("::", "model"), ("a.B_c-1", "a.B_c-1")]
)
def test_names_are_safe_for_a_queue(stem: str, name: str) -> None:
    assert safe_name(stem) == name


def test_a_path_that_cannot_be_looked_at_is_said_in_words(tmp_path: Path) -> None:
    for name in (f"/{'x' * 300}.gguf", "x" * 300):
        with pytest.raises(
            UnknownModel, match=r"cannot be looked at by user \d+: File name too long"
        ):
            resolve_model(name, tmp_path)
