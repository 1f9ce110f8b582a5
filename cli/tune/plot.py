"""The Pareto front of throughput and latency as a picture."""

from pathlib import Path

from cli.tune.decision import Decision
from shared.errors import SetupError

SUFFIXES = (".svg", ".png")


def check_plot(path: Path) -> None:
    """Before anything is measured for it. Raises ``SetupError``."""
    if path.suffix.lower() not in SUFFIXES:
        raise SetupError(f"--plot {path}: must end in {' or '.join(SUFFIXES)}")
    if not path.absolute().parent.is_dir():
        raise SetupError(f"--plot {path}: there is no directory {path.absolute().parent}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SetupError(
            "--plot: matplotlib is not installed; install Mini vLLM with its extra `plots`"
        ) from None


def draw(path: Path, decision: Decision, title: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 6))
    rows = [row for row in decision.rows if row.measure.itl_p99_ms and not row.refusal]
    for row in rows:
        made = row.measure
        is_chosen = (
            decision.chosen is not None and made.candidate == decision.chosen.measure.candidate
        )
        in_front = made.candidate in decision.pareto
        axes.scatter(
            made.output_tokens_per_s,
            made.itl_p99_ms or 0,
            marker="*" if is_chosen else "o",
            s=180 if is_chosen else 45,
            facecolors="C0" if in_front else "none",
            edgecolors="C0" if row.repeats else "0.6",
        )
        axes.annotate(
            str(made.candidate),
            (made.output_tokens_per_s, made.itl_p99_ms or 0),
            fontsize=7,
            xytext=(6, 4),
            textcoords="offset points",
        )
    front = [r.measure for c in decision.pareto for r in rows if r.measure.candidate == c]
    axes.plot(
        [m.output_tokens_per_s for m in front], [m.itl_p99_ms or 0 for m in front], "C0-", lw=1
    )
    axes.set_xlabel("output tokens per second (more is better)")
    axes.set_ylabel("time between tokens, p99, ms (less is better)")
    axes.set_title(f"{title}\nfilled: Pareto front; star: chosen; grey: estimate of a short trial")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    try:
        figure.savefig(path)
    except OSError as error:
        raise SetupError(f"--plot {path}: {error.strerror}") from None
    finally:
        pyplot.close(figure)
