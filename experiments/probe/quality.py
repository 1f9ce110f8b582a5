"""``python -m experiments.probe.quality``: how far one format's predictions are from another's. Reads its
plan as a JSON line, and writes its figures as one."""

import json
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from cli.divergence import Divergence
from cli.verify import read_text, windows_of
from experiments.probe.orders import QualityPlan
from shared.errors import ServiceError
from shared.exit_codes import EXIT_CONFIG
from worker.leases import pin


def main() -> int:
    plan = QualityPlan.model_validate_json(sys.stdin.readline())
    pin(plan.cores)
    # Only now: what llama.cpp's threads are pinned to is settled when its library is loaded.
    from worker.backends.scorer import Scorer

    found = Divergence()
    threads = len(plan.cores)
    try:
        with (
            closing(Scorer(Path(plan.reference_path), threads)) as best,
            closing(Scorer(Path(plan.model_path), threads)) as other,
        ):
            for window in windows_of(best.tokenize(read_text(None)), plan.windows):
                for (rows, followed_by), (theirs, _) in zip(
                    best.score(window), other.score(window), strict=True
                ):
                    found.add(rows, theirs, followed_by)
    except ServiceError as error:
        sys.stderr.write(error.message + "\n")
        return EXIT_CONFIG
    sys.stdout.write(json.dumps(asdict(found.figures())) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
