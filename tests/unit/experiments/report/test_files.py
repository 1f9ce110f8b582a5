from pathlib import Path

from experiments.report.files import write_report


def test_ctrl_c_while_a_report_is_written_leaves_whole_files_only(tmp_path: Path) -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    texts = {"html": lambda: "a page", "md": interrupted, "json": lambda: "{}"}
    written, is_interrupted = write_report(tmp_path, "report", texts)
    assert is_interrupted
    assert written == list(tmp_path.iterdir()) == [tmp_path / "report.html"]


def test_every_file_is_named_and_written(tmp_path: Path) -> None:
    written, is_interrupted = write_report(tmp_path, "r", {"md": lambda: "m", "json": lambda: "{}"})
    assert not is_interrupted
    assert [(file.name, file.read_text()) for file in written] == [("r.md", "m"), ("r.json", "{}")]
