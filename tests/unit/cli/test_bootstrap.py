from cli.bootstrap import build_environment, ninja_progress, num_requirements, split_lock

LOCK = """\
# made by a tool
annotated-doc==0.0.7 \\
    --hash=sha256:aa \\
    --hash=sha256:ab
llama-cpp-python==0.3.36 \\
    --hash=sha256:cc
llama-cpp-python-extras==1 \\
    --hash=sha256:dd
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:ee
"""


def test_the_lock_is_split_into_what_is_compiled_and_the_rest() -> None:
    rest, native = split_lock(LOCK)
    assert native == "llama-cpp-python==0.3.36 \\\n    --hash=sha256:cc\n"
    assert rest == LOCK.replace(native, "")
    assert num_requirements(rest) == 3


def test_ninjas_progress_is_read_from_a_line_of_pip() -> None:
    assert ninja_progress("    [12/345] Building CXX object vendor/x.o") == (12, 345)
    assert ninja_progress("  Building wheel for llama-cpp-python") is None
    assert ninja_progress("[1/0]") is None


def test_the_build_is_for_this_cpu_and_without_llava_unless_told() -> None:
    assert build_environment({"SOURCE_DATE_EPOCH": "1", "A": "b"}) == {
        "A": "b",
        "CMAKE_ARGS": "-DLLAVA_BUILD=OFF",
    }
    assert build_environment({"CMAKE_ARGS": "-DX=1"}) == {"CMAKE_ARGS": "-DX=1"}
