"""The Pareto front of throughput and latency as a picture."""

from pathlib import Path

from cli.tune.decision import Decision, score
from cli.tune.measures import Measure
from cli.tune.report import gain_words
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


def takeaway(decision: Decision, objective: str) -> str:
    if decision.chosen is None:
        return "Nothing could be chosen"
    made = decision.chosen.measure
    words = f"{made.candidate}: {made.output_tokens_per_s:.0f} tokens/s"
    gain = decision.gain_over_default
    return words if gain is None else f"{words}, {gain_words(gain, objective)}the default"


def _latency_ms(measure: Measure) -> float:
    """What the Pareto front is of."""
    return 1000 / score(measure, "latency")


def draw(path: Path, decision: Decision, clients: int, objective: str) -> None:
    """Raises ``SetupError``."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 6))
    rows = [row for row in decision.rows if score(row.measure, "latency") and not row.refusal]
    for row in rows:
        made = row.measure
        is_chosen = (
            decision.chosen is not None and made.candidate == decision.chosen.measure.candidate
        )
        in_front = made.candidate in decision.pareto
        axes.scatter(
            made.output_tokens_per_s,
            _latency_ms(made),
            marker="*" if is_chosen else "o",
            s=180 if is_chosen else 45,
            facecolors="C0" if in_front else "none",
            edgecolors="C0" if row.repeats else "0.6",
        )
        axes.annotate(
            str(made.candidate),
            (made.output_tokens_per_s, _latency_ms(made)),
            fontsize=7,
            xytext=(6, 4),
            textcoords="offset points",
        )
    front = [r.measure for c in decision.pareto for r in rows if r.measure.candidate == c]
    axes.plot([m.output_tokens_per_s for m in front], [_latency_ms(m) for m in front], "C0-", lw=1)
    axes.set_xlabel("output tokens per second (more is better)")
    axes.set_ylabel("p99 of TTFT and time between tokens, geometric mean, ms")
    axes.set_title(
        f"{takeaway(decision, objective)}\n"
        f"{clients} clients; filled: Pareto front; star: chosen; grey: estimate of a short trial",
        fontsize=10,
    )
    axes.margins(x=0.25, y=0.1)  # room for what is written beside the points
    axes.grid(alpha=0.3)
    figure.tight_layout()
    try:
        figure.savefig(path)
    except OSError as error:
        raise SetupError(f"--plot {path}: {error.strerror}") from None
    finally:
        pyplot.close(figure)
