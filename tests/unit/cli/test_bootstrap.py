import pytest

from cli.bootstrap import LOCK, build_environment, ninja_progress, num_requirements, split_lock


def test_the_lock_is_split_into_what_is_compiled_and_the_rest() -> None:
    text = LOCK.read_text()
    rest, native = split_lock(text)
    assert native.startswith("llama-cpp-python==")
    assert "--hash=sha256:" in native
    assert num_requirements(native) == 1
    assert "llama-cpp-python" not in rest
    assert num_requirements(rest) == num_requirements(text) - 1


def test_the_lock_pins_everything_with_hashes_and_names_no_index() -> None:
    entries = LOCK.read_text()
    assert "://" not in entries
    assert "index" not in entries.replace("importlib", "")
    for line in entries.splitlines():
        assert line.lstrip().startswith("--hash=sha256:") or "==" in line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  [12/345] Building CXX object ggml.o", (12, 345)),
        ("[345/345] Linking", (345, 345)),
        ("Collecting numpy", None),
        ("[0/0] nothing", None),
    ],
)
def test_the_progress_of_the_build_is_what_ninja_says(
    line: str, expected: tuple[int, int] | None
) -> None:
    assert ninja_progress(line) == expected


def test_the_build_is_for_this_cpu_whatever_the_environment_says() -> None:
    env = build_environment({"SOURCE_DATE_EPOCH": "1", "PATH": "/bin"})
    assert "SOURCE_DATE_EPOCH" not in env
    assert env["CMAKE_ARGS"] == "-DLLAVA_BUILD=OFF"
    assert build_environment({"CMAKE_ARGS": "-DX=1"})["CMAKE_ARGS"] == "-DX=1"
