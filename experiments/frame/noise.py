"""Whether a run was disturbed, in words. Pure."""

import statistics

from cli.tune.decision import NOISY_DELAY, NOISY_SPREAD
from experiments.frame.samples import Samples

#: Cores' worth of CPU that others used before it began.
_BUSY_CORES = 0.3


def noise_of(samples: Samples, busy_cores_before: float, spread_names: tuple[str, ...]) -> str:
    """``spread_names``: the figures that rounds should agree on. Empty if it was quiet."""
    words = []
    if busy_cores_before > _BUSY_CORES:
        words.append(f"other processes used {busy_cores_before:.1f} cores before it began")
    wide = [
        (spread.share, case, name)
        for case, name, spread in samples.spreads()
        if name in spread_names and spread.rounds > 1 and case.get("neighbour", "none") == "none"
    ]
    noisy = [entry for entry in wide if entry[0] > NOISY_SPREAD]
    if noisy:
        share, case, name = max(noisy, key=lambda entry: entry[0])
        of = ", ".join(f"{key} {value}" for key, value in case.items())
        words.append(
            f"rounds differ by more than {NOISY_SPREAD:.0%} in {len(noisy)} of {len(wide)} "
            f"figures, "
            f"at most by {share:.0%} ({name} of {of})"
        )
    delays = samples.values("delayed_share")
    delayed = statistics.median(delays) if delays else 0.0
    if delayed > NOISY_DELAY:
        words.append(f"our threads waited for a core for {delayed:.0%} of the time")
    return "; ".join(words)
